import { useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { useApi } from '../../../components/session/api-context.ts';
import { useToast } from '../../../components/toast/toasts.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { messageOf } from '../../../lib/api/api-failure.ts';
import { jobPath } from '../use-job.ts';
import { listTexts } from './texts/list-texts.ts';

export type BulkAction = 'cancel' | 'discard';

const atOnce = 4;

/**
 * One action on several jobs, each by its own request: a job that another operator was faster with is refused alone.
 * Stops where it is asked to.
 */
export function useBulk() {
  const t = useText(listTexts);
  const api = useApi();
  const toast = useToast();
  const queries = useQueryClient();
  const [progress, setProgress] = useState<Readonly<{ done: number; all: number }> | null>(null);
  const isStopped = useRef(false);
  const run = async (action: BulkAction, ids: readonly string[], reason: string): Promise<void> => {
    const failures: string[] = [];
    let done = 0;
    const waiting = ids.values();
    isStopped.current = false;
    setProgress({ done, all: ids.length });
    const work = async (): Promise<void> => {
      for (const id of waiting) {
        if (isStopped.current) return;
        await api
          .send('POST', `${jobPath(id)}/${action}`, { body: { reason } })
          .catch((error: unknown) => failures.push(messageOf(error)));
        done += 1;
        setProgress({ done, all: ids.length });
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    setProgress(null);
    void queries.invalidateQueries({ queryKey: ['jobs'] });
    const [first] = failures;
    const ended = { cancel: t.cancelled, discard: t.discarded }[action](done - failures.length);
    toast({
      text: first === undefined ? ended : `${ended} ${t.refused(failures.length, first)}`,
      isFailure: first !== undefined,
    });
  };
  return {
    progress,
    run,
    stop: () => {
      isStopped.current = true;
    },
  };
}
