'use no memo';

import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef } from 'react';
import { useText } from '../../../components/text/use-text.ts';
import styles from './detail.module.css';
import { LogHead, LogTableRow } from './log-row.tsx';
import type { LogTableProps } from './log-table.tsx';
import { detailTexts } from './texts/detail-texts.ts';

const rowHeight = 32;

/** Only the rows in view are drawn; screen readers are told how many there are. */
export function LongLog({ log, selected, onSelect }: LogTableProps) {
  const t = useText(detailTexts);
  const box = useRef<HTMLDivElement>(null);
  // oxlint-disable-next-line react/incompatible-library -- This file opts out of the compiler.
  const rows = useVirtualizer({
    count: log.length,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  });
  const latest = useRef({ rows, log });
  useEffect(() => {
    latest.current = { rows, log };
  });
  useEffect(() => {
    const { rows: shownRows, log: whole } = latest.current;
    const at = whole.findIndex(({ id }) => id === selected);
    if (at >= 0) shownRows.scrollToIndex(at, { align: 'auto' });
    // Only when another row is selected, not when the log is read again.
  }, [selected]);
  const shown = rows.getVirtualItems();
  const before = shown[0]?.start ?? 0;
  const after = rows.getTotalSize() - (shown.at(-1)?.end ?? 0);
  return (
    // A region that scrolls can be reached by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div ref={box} className={styles['longLog']} tabIndex={0} role="region" aria-label={t.log}>
      <table className={styles['table']} data-fixed aria-rowcount={log.length + 1}>
        <caption className="visually-hidden">{t.logCaption}</caption>
        <LogHead />
        <tbody>
          {before > 0 ? <Spacer height={before} /> : null}
          {shown.flatMap(({ index }) => {
            const row = log[index];
            if (row === undefined) return [];
            return [
              <LogTableRow key={row.id} row={row} isSelected={row.id === selected} onSelect={onSelect} />,
            ];
          })}
          {after > 0 ? <Spacer height={after} /> : null}
        </tbody>
      </table>
    </div>
  );
}

function Spacer({ height }: Readonly<{ height: number }>) {
  return (
    <tr aria-hidden style={{ height }}>
      {/* oxlint-disable-next-line jsx-a11y/control-has-associated-label -- It stands for rows out of view. */}
      <td colSpan={8} />
    </tr>
  );
}
