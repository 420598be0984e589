import { useMemo } from 'react';
import type { Column } from '../../../components/list/column.ts';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import type { ListedMessage } from '../../../lib/server-shapes.ts';
import { formatBytes } from '../../../lib/sizes.ts';
import { errorTitle, keyText, placeText } from './message-words.ts';
import { messagesTexts } from './texts/messages-texts.ts';

/** Beside a preview there is room for what tells rows apart; the preview has the rest. */
export function useMessageColumns(isNarrow: boolean): readonly Column<ListedMessage>[] {
  const t = useText(messagesTexts);
  return useMemo(() => {
    const columns: readonly Column<ListedMessage>[] = [
      {
        id: 'status',
        title: t.status,
        width: '132px',
        textOf: ({ status, retry_count: count }) => `${status} ${count}`,
        render: (row) => <StatusBadge status={row.status} detail={`${row.retry_count}/${row.max_retries}`} />,
      },
      {
        id: 'place',
        title: t.topic,
        width: '20%',
        render: (row) =>
          placeText({
            topic: row.original_topic,
            partition: row.original_partition,
            offset: row.original_offset,
          }),
      },
      { id: 'key', title: t.key, width: '12%', render: (row) => <code>{keyText(row) ?? '–'}</code> },
      { id: 'error', title: t.error, isPrimary: true, render: (row) => errorTitle(row) },
      {
        id: 'size',
        title: t.size,
        width: '84px',
        isNumber: true,
        render: ({ payload_bytes: bytes }) => (bytes === null ? '–' : formatBytes(bytes)),
      },
      {
        id: 'stored',
        title: t.stored,
        width: isNarrow ? '72px' : '152px',
        render: (row) => <Time at={row.created_at} show={isNarrow ? 'age' : 'both'} />,
      },
    ];
    return isNarrow ? columns.filter(({ id }) => id !== 'size' && id !== 'key') : columns;
  }, [t, isNarrow]);
}
