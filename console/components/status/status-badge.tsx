import { roleOf, type StatusRole } from '../../lib/status/status-roles.ts';
import { Glyph } from './glyph.tsx';
import styles from './status.module.css';

export type StatusBadgeProps = Readonly<{
  status: string;
  /** Beside the word, such as `3/3` attempts. */
  detail?: string;
  /** Where the same word means something else, as for a stuck saga. */
  role?: StatusRole;
  /** Another shape in the same colour, where several kinds of things have the same meaning. */
  shape?: StatusRole;
  /** As a filled badge, for headers. */
  isFilled?: boolean;
}>;

/** A status as glyph, word and colour. The word is that of the API, which filters take. */
export function StatusBadge({
  status,
  detail,
  role = roleOf(status),
  shape = role,
  isFilled = false,
}: StatusBadgeProps) {
  return (
    <span className={styles['badge']} data-role={role} data-filled={isFilled || undefined}>
      <Glyph role={shape} />
      <span>{status}</span>
      {detail === undefined ? null : <span className={styles['detail']}>{detail}</span>}
    </span>
  );
}
