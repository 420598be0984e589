import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { ConfirmDialog } from '../../../components/dialog/confirm-dialog.tsx';
import { reasonField, type Confirmation } from '../../../components/dialog/confirmation.ts';
import { ListTable } from '../../../components/list/list-table.tsx';
import { Page } from '../../../components/navigation/page.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { useToast } from '../../../components/toast/toasts.tsx';
import { loadedOf } from '../../../lib/loaded.ts';
import { printTerm } from '../../../lib/filter/filter.ts';
import type { Operations, Queue } from '../../../lib/server-shapes.ts';
import { useQueueColumns } from './queue-columns.tsx';
import styles from './queues.module.css';
import { queuesTexts } from './texts/queues-texts.ts';

type QueueList = Operations['listQueues']['answer'];

const everyMs = 5000;

/** How deep each queue is, how fast it runs, what stands in its way, and the way to pause it. */
export function QueuesPage() {
  const t = useText(queuesTexts);
  const api = useApi();
  const { confirmation, setConfirmation, ask } = usePause();
  const actionOf = useCallback(
    (queue: Queue) => <PauseButton queue={queue} onPress={() => ask(queue)} />,
    [ask],
  );
  const columns = useQueueColumns(actionOf);
  const query = useQuery({
    queryKey: ['jobs', 'queues'],
    queryFn: ({ signal }) => api.get<QueueList>('/api/v1/jobs/queues', signal),
    refetchInterval: everyMs,
  });
  return (
    <Page title={t.queues}>
      <LoadedPanel
        loaded={loadedOf(query, ({ queues }) => (queues.length === 0 ? 'nothing' : null))}
        onRetry={() => void query.refetch()}
        renderEmpty={() => (
          <EmptyState title={t.noQueues}>
            <p>{t.noQueuesHint}</p>
          </EmptyState>
        )}
      >
        {({ queues, throughput_is_partial: isPartial }, isRefreshing) => (
          <>
            <ListTable
              caption={t.listCaption}
              rows={queues}
              idOf={({ queue }) => queue}
              nameOf={({ queue }) => queue}
              linkOf={({ queue }) => ({
                to: '/jobs/list',
                search: { q: printTerm({ qualifier: 'queue', value: queue, isExcluded: false }) },
              })}
              columns={columns}
              isRefreshing={isRefreshing}
              initialCursor=""
              rowKeys={{ p: ask }}
            />
            {isPartial === true ? <p className={styles['note']}>{t.partial}</p> : null}
          </>
        )}
      </LoadedPanel>
      <ConfirmDialog confirmation={confirmation} onEnd={() => setConfirmation(null)} />
    </Page>
  );
}

function PauseButton({ queue, onPress }: Readonly<{ queue: Queue; onPress: () => void }>) {
  const t = useText(queuesTexts);
  const may = useMay('jobs:queues:pause');
  return (
    <Button keys="p" disabledReason={may.reason} onPress={onPress}>
      {queue.paused ? t.resume : t.pause}
    </Button>
  );
}

/** Both can be undone by the other, so a reason is enough. */
function usePause() {
  const t = useText(queuesTexts);
  const api = useApi();
  const toast = useToast();
  const queries = useQueryClient();
  const may = useMay('jobs:queues:pause');
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const ask = useCallback(
    ({ queue, paused }: Queue): void => {
      if (!may.isAllowed) return;
      const title = paused ? t.resumeTitle(queue) : t.pauseTitle(queue);
      setConfirmation({
        title,
        action: title,
        consequence: paused ? t.resumeConsequence : t.pauseConsequence,
        fields: [reasonField(t.reason, t.reasonHint, !paused)],
        async perform({ reason = '' }) {
          const verb = paused ? 'resume' : 'pause';
          const body = reason.trim() === '' ? {} : { reason };
          await api.send('POST', `/api/v1/jobs/queues/${encodeURIComponent(queue)}/${verb}`, { body });
          toast({ text: paused ? t.resumedToast(queue) : t.pausedToast(queue) });
          await queries.invalidateQueries({ queryKey: ['jobs', 'queues'] });
        },
      });
    },
    [t, api, toast, queries, may.isAllowed],
  );
  return { confirmation, setConfirmation, ask };
}
