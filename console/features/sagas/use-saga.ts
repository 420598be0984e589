import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useLiveState } from '../../components/live/live-context.ts';
import { useLiveReading } from '../../components/live/use-live-reading.ts';
import { useApi } from '../../components/session/api-context.ts';
import type { Saga, SagaWithSteps, StepLog } from '../../lib/server-shapes.ts';
import { inRunOrder } from '../../lib/timeline/timeline.ts';

const runningMs = 1000;
const restingMs = 5000;

export type LogRow = StepLog &
  Readonly<{
    /** In which things ran, from 1. */
    order: number;
    /** The service has accepted the call, and is asked from time to time whether it is done. */
    isPolled: boolean;
  }>;

export type ReadSaga = Readonly<{
  saga: SagaWithSteps['saga'];
  /** In the order in which things ran. */
  log: readonly LogRow[];
  /** The whole answer as it was sent: numbers in payloads keep their digits. */
  text: string;
}>;

/** One saga with its log, read again when it changes. */
export function useSaga(id: string) {
  const api = useApi();
  const queries = useQueryClient();
  const isLive = useLiveState(({ connection }) => connection === 'live');
  const query = useQuery({
    queryKey: ['sagas', 'saga', id],
    queryFn: async ({ signal }): Promise<ReadSaga> => {
      const { value, text } = await api.read<SagaWithSteps>(sagaPath(id), signal);
      return readSagaOf(value, text);
    },
    refetchInterval: ({ state: { data } }) => {
      if (isLive) return false;
      if (data === undefined) return restingMs;
      const { status, needs_attention: isStuck } = data.saga;
      if (isEnd(status)) return false;
      return isStuck ? restingMs : runningMs;
    },
  });
  useLiveReading({
    slices: ['sagas'],
    isOwn: ({ ids, many }) => many || ids.includes(id),
    read: () => query.refetch(),
    // What a dialog says must not be older than what the server decides by.
    ignoresHold: true,
  });
  return {
    query,
    /** After an action: the saga and all lists are old. */
    readAgain: async (): Promise<void> => {
      for (const list of ['list', 'facets', 'workflows'])
        void queries.invalidateQueries({ queryKey: ['sagas', list] });
      await query.refetch();
    },
    /** The status that the server has now; null if it does not answer. */
    statusNow: async (): Promise<string | null> => {
      const { data, isError } = await query.refetch();
      return isError ? null : (data?.saga.status ?? null);
    },
  };
}

export type SagaHandle = ReturnType<typeof useSaga>;

export function readSagaOf({ saga, step_logs: log }: SagaWithSteps, text: string): ReadSaga {
  return { saga, log: orderedLog(log, saga), text };
}

/** Between two polls a saga has an open attempt, and a time at which it goes on. */
export function orderedLog(
  log: readonly StepLog[],
  { next_attempt_at: next }: Pick<Saga, 'next_attempt_at'>,
): readonly LogRow[] {
  const rows = log.map((row) => ({ ...row, step: row.step_index, op: row.action }));
  return inRunOrder(rows).map(({ step: _step, op: _op, ...row }, i) => ({
    ...row,
    order: i + 1,
    isPolled: row.status === null && next !== null,
  }));
}

export function isEnd(status: string): boolean {
  return status === 'COMPLETED' || status === 'FAILED' || status === 'CANCELLED';
}

export function sagaPath(id: string): string {
  return `/api/v1/sagas/${encodeURIComponent(id)}`;
}
