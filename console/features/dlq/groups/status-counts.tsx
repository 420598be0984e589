import { Glyph } from '../../../components/status/glyph.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { Group } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { roleOf } from '../../../lib/status/status-roles.ts';
import styles from './groups.module.css';
import { groupsTexts } from './texts/groups-texts.ts';

const shown = ['PENDING', 'RETRYING', 'DEAD'] as const;

/** What is open, as figures with glyphs, each at its own place. */
export function StatusCounts({ counts }: Readonly<{ counts: Group['counts'] }>) {
  const t = useText(groupsTexts);
  return (
    <span className={styles['counts']}>
      {shown.map((status) => (
        <span
          key={status}
          data-role={roleOf(status)}
          data-zero={counts[status] === 0 || undefined}
          title={status}
        >
          <Glyph role={roleOf(status)} />
          <span aria-hidden>{formatCount(counts[status])}</span>
          <span className="visually-hidden">{t.withStatus(counts[status], status)}</span>
        </span>
      ))}
    </span>
  );
}
