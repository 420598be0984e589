import type { StatusRole } from '../../lib/status/status-roles.ts';
import styles from './status.module.css';

/** A shape per meaning, so that colour is never needed to tell two of them apart. */
export function Glyph({ role }: Readonly<{ role: StatusRole }>) {
  return (
    <svg className={styles['glyph']} data-role={role} viewBox="0 0 12 12" width="12" height="12" aria-hidden>
      {shapes[role]}
    </svg>
  );
}

const line = { fill: 'none', stroke: 'currentColor', strokeWidth: 1.5, strokeLinecap: 'round' } as const;

const shapes: Readonly<Record<StatusRole, React.ReactNode>> = {
  attention: <path fill="currentColor" d="M3.8.8h4.4l3 3v4.4l-3 3H3.8l-3-3V3.8z" />,
  retry: (
    <>
      <circle {...line} cx="6" cy="6" r="5" />
      <path fill="currentColor" d="M6 6V2.4A3.6 3.6 0 0 1 9.6 6z" />
    </>
  ),
  working: (
    <>
      <circle {...line} cx="6" cy="6" r="5" />
      <path fill="currentColor" d="M6 1.5a4.5 4.5 0 0 1 0 9z" />
    </>
  ),
  undoing: <path {...line} d="M4 1.2 1.3 4 4 6.8M1.6 4h5.6a3.4 3.4 0 0 1 0 6.8H4.5" />,
  done: <path {...line} strokeWidth={2} d="m1.5 6.5 3 3 6-7" />,
  queued: <circle {...line} cx="6" cy="6" r="5" />,
  ended: (
    <>
      <circle {...line} cx="6" cy="6" r="5" />
      <path {...line} d="m2.8 9.2 6.4-6.4" />
    </>
  ),
  archived: (
    <>
      <path {...line} d="M1 1h10v10H1z" />
      <path fill="currentColor" d="M3.5 3.5h5v5h-5z" />
    </>
  ),
  doubt: (
    <>
      <path {...line} strokeDasharray="2 1.6" d="M6 .9 11.1 6 6 11.1.9 6z" />
      <path {...line} strokeWidth={1.2} d="M4.8 4.9c0-1.6 2.4-1.6 2.4 0 0 1-1.2 1-1.2 2M6 8.6v.1" />
    </>
  ),
};
