import { useMemo } from 'react';
import { diffLines } from '../../lib/diff/line-diff.ts';
import styles from './diff.module.css';

type Props = Readonly<{ label: string; before: string; after: string }>;

const signs = { same: ' ', removed: '-', added: '+' } as const;

/** The changed lines of a text, with some around them. */
export function LineDiff({ label, before, after }: Props) {
  const lines = useMemo(
    () => diffLines(before, after).filter((_, i, all) => isNearChange(all, i)),
    [before, after],
  );
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- It scrolls.
    <pre className={styles['diff']} tabIndex={0} role="region" aria-label={label}>
      {lines.map(({ kind, text }, i) => (
        <span key={i} data-kind={kind}>
          {signs[kind]} {text}
          {'\n'}
        </span>
      ))}
    </pre>
  );
}

const around = 3;

/** Lines that are far from every change only take space. */
function isNearChange(lines: readonly Readonly<{ kind: string }>[], at: number): boolean {
  return lines.slice(Math.max(0, at - around), at + around + 1).some(({ kind }) => kind !== 'same');
}
