import { redriveAt, takenOrLater } from '../redrive-http.ts';
import type { Article } from './articles.ts';

/** What the newsroom needs of Redrive's API. */
export type RedriveClient = Readonly<{
  /** `later`: nobody knows whether it was taken, so it has to be added again, with the same dedupe key. */
  enqueue(article: Article): Promise<'taken' | 'later'>;
  look(): Promise<QueueView>;
}>;

export type QueueView = Readonly<{
  waiting: number;
  needingPerson: number;
  /** One that needs attention; null where none does. */
  deadJobId: string | null;
}>;

export function createRedriveClient(url: string, queue: string, signal: AbortSignal): RedriveClient {
  const redrive = redriveAt(url, 'demo-newsroom');
  return {
    enqueue: (article) =>
      takenOrLater(
        redrive.enqueueJob({ queue, payload: article, dedupe_key: article.article_id }, { signal }),
        signal,
      ),
    async look() {
      const { queues } = await redrive.listQueues({}, { signal });
      const ours = queues.find((one) => one.queue === queue);
      if (ours === undefined) return { waiting: 0, needingPerson: 0, deadJobId: null };
      const { jobs } = await redrive.listDeadJobs({ queue, page_size: 1 }, { signal });
      return {
        waiting: ours.counts.pending + ours.counts.failed,
        needingPerson: ours.unresolved,
        deadJobId: jobs[0]?.job_id ?? null,
      };
    },
  };
}
