import type { StatusRole } from '../../lib/status/status-roles.ts';
import { formatCount } from '../../lib/sizes.ts';
import { Glyph } from '../status/glyph.tsx';
import styles from './charts.module.css';

export type MeterPart = Readonly<{ label: string; value: number; role: StatusRole }>;

/** Parts of a whole, as a bar and as figures with glyphs, so that colour is never needed. */
export function StackedMeter({ label, parts }: Readonly<{ label: string; parts: readonly MeterPart[] }>) {
  const whole = parts.reduce((sum, part) => sum + part.value, 0);
  return (
    <figure aria-label={label} className={styles['meter']}>
      <div className={styles['track']} aria-hidden>
        {parts
          .filter(({ value }) => value > 0)
          .map((part) => (
            <span
              key={part.label}
              data-role={part.role}
              style={{ flexGrow: part.value / Math.max(1, whole) }}
            />
          ))}
      </div>
      <ul className={styles['legend']}>
        {parts.map((part) => (
          <li key={part.label} data-role={part.role}>
            <Glyph role={part.role} /> {part.label} <strong>{formatCount(part.value)}</strong>
          </li>
        ))}
      </ul>
    </figure>
  );
}
