import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { useApi } from '../../../components/session/api-context.ts';
import type { Operations, Requeued, RequeuePreview } from '../../../lib/server-shapes.ts';

type Answer = Operations['requeueJobs']['answer'];

/** The dead letters that are meant: fields of the request's body. */
export type DeadSelection = Readonly<Record<string, unknown>>;

export type RequeueRun = Readonly<{
  requeued: number;
  /** What the last request skipped. */
  last: Requeued | null;
  state: 'running' | 'ended' | 'stopped';
  error: Error | null;
}>;

const path = '/api/v1/jobs/requeue';
const perRequest = 500;

/** How many the preview says will be requeued; null if it has not counted all. */
export function countOf({
  matched,
  has_more: isMore,
  dedupe_key_taken: taken,
}: RequeuePreview): number | null {
  return isMore ? null : matched - taken;
}

/** The preview of a selection; null is no selection. */
export function usePreview(selection: DeadSelection | null) {
  const api = useApi();
  return useQuery({
    queryKey: ['jobs', 'requeue', JSON.stringify(selection)],
    queryFn: async ({ signal }) => {
      const body = { ...selection, preview: true };
      const { value } = await api.send<Answer>('POST', path, { body, signal });
      if (!value.preview) throw new Error('the server did not send a preview');
      return value;
    },
    enabled: selection !== null,
    staleTime: 0,
  });
}

/** Requeues in requests of a bounded size, so that there is a figure to see, and a way to stop. */
export function useRequeue() {
  const api = useApi();
  const queries = useQueryClient();
  const [run, setRun] = useState<RequeueRun | null>(null);
  const isStopped = useRef(false);
  const start = async (selection: DeadSelection, most: number | null, reason: string): Promise<void> => {
    isStopped.current = false;
    let requeued = 0;
    let last: Requeued | null = null;
    let error: Error | null = null;
    setRun({ requeued, last, state: 'running', error });
    try {
      for (let left = most ?? Infinity; left > 0 && !isStopped.current;) {
        const body = { ...selection, reason, limit: Math.min(left, perRequest) };
        const { value } = await api.send<Answer>('POST', path, { body });
        if (value.preview) throw new Error('the server sent a preview');
        last = value;
        requeued += value.requeued;
        left -= value.requeued;
        setRun({ requeued, last, state: 'running', error });
        if (!value.has_more || value.requeued === 0) break;
      }
    } catch (cause) {
      error = cause instanceof Error ? cause : new Error(String(cause));
    }
    setRun({ requeued, last, state: isStopped.current ? 'stopped' : 'ended', error });
    void queries.invalidateQueries({ queryKey: ['jobs'] });
  };
  return {
    run,
    start,
    stop: () => {
      isStopped.current = true;
    },
  };
}
