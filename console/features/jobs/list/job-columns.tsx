import { useContext, useMemo, useSyncExternalStore } from 'react';
import type { Column } from '../../../components/list/column.ts';
import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { ClockContext } from '../../../components/time/clock.ts';
import { Time } from '../../../components/time/time.tsx';
import { formatDuration } from '../../../lib/times.ts';
import { durationMs, durationText, lastEvent, nameOf, shownStatus, type ListedJob } from '../job-words.ts';
import { listTexts } from './texts/list-texts.ts';

/** Beside a preview only what tells jobs apart. */
export function useJobColumns(isNarrow: boolean): readonly Column<ListedJob>[] {
  const t = useText(listTexts);
  return useMemo(
    () => [
      {
        id: 'status',
        title: t.status,
        width: '156px',
        textOf: (row) => `${shownStatus(row)} ${row.retry_count}`,
        render: (row) => (
          <StatusBadge status={shownStatus(row)} detail={`${row.retry_count}/${row.max_retries}`} />
        ),
      },
      { id: 'queue', title: t.queue, width: '14%', render: ({ queue }) => queue },
      {
        id: 'job',
        title: t.job,
        width: '150px',
        isPrimary: true,
        render: (row) => <code>{nameOf(row)}</code>,
      },
      {
        id: 'error',
        title: t.error,
        render: ({ error_message: error }) => (error === null ? '' : <MaskedText text={firstLine(error)} />),
      },
      {
        id: 'when',
        title: t.when,
        width: isNarrow ? '72px' : '164px',
        render: (row) => <Time at={lastEvent(row)} show={isNarrow ? 'age' : 'both'} />,
      },
      ...(isNarrow
        ? []
        : [
            {
              id: 'duration',
              title: t.duration,
              width: '84px',
              isNumber: true,
              render: (row: ListedJob) => <Duration row={row} />,
            },
          ]),
    ],
    [t, isNarrow],
  );
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}

function Duration({ row }: Readonly<{ row: ListedJob }>) {
  const [{ language }] = usePreferences();
  const clock = useContext(ClockContext);
  return useSyncExternalStore(clock.subscribe, () => {
    const ms = durationMs(row, clock.now());
    return ms === null ? '–' : durationText(ms, (long) => formatDuration(long, language));
  });
}
