import { lazy, Suspense } from 'react';
import { Skeleton } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { LogRow } from '../use-saga.ts';
import styles from './detail.module.css';
import { LogHead, LogTableRow } from './log-row.tsx';
import { detailTexts } from './texts/detail-texts.ts';

/** Loaded only for a log that is too long to be drawn whole. */
const LongLog = lazy(async () => ({ default: (await import('./long-log.tsx')).LongLog }));

export type LogTableProps = Readonly<{
  log: readonly LogRow[];
  selected: string | null;
  onSelect: (id: string) => void;
}>;

const maxWhole = 200;

/** All attempts as a plain table: what the picture is drawn from. */
export function LogTable({ log, selected, onSelect }: LogTableProps) {
  const t = useText(detailTexts);
  return (
    <section aria-labelledby="log" className={styles['log']}>
      <h2 id="log">{t.log}</h2>
      {log.length === 0 ? (
        <p>{t.emptyLog}</p>
      ) : log.length > maxWhole ? (
        <Suspense fallback={<Skeleton />}>
          <LongLog log={log} selected={selected} onSelect={onSelect} />
        </Suspense>
      ) : (
        <div className={styles['tableBox']}>
          <table className={styles['table']}>
            <caption className="visually-hidden">{t.logCaption}</caption>
            <LogHead />
            <tbody>
              {log.map((row) => (
                <LogTableRow key={row.id} row={row} isSelected={row.id === selected} onSelect={onSelect} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}
