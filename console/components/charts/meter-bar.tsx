import type { StatusRole } from '../../lib/status/status-roles.ts';
import styles from './charts.module.css';

type Part = Readonly<{ label: string; value: number; role: StatusRole }>;

/** Parts of a whole as a bar alone; `label` says in words what it shows, and the figures stand beside it. */
export function MeterBar({ label, parts }: Readonly<{ label: string; parts: readonly Part[] }>) {
  const whole = Math.max(
    1,
    parts.reduce((sum, { value }) => sum + value, 0),
  );
  return (
    <div role="img" aria-label={label} title={label} className={styles['track']}>
      {parts
        .filter(({ value }) => value > 0)
        .map(({ label: name, value, role }) => (
          <span key={name} data-role={role} style={{ flexGrow: value / whole }} />
        ))}
    </div>
  );
}
