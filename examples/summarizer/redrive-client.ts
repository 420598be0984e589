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

const timeoutMs = 10_000;

/** Calls end with the signal, or when Redrive has not answered for a long time. */
export function createRedriveClient(url: string, queue: string, stopping: AbortSignal): RedriveClient {
  const root = `${url}/api/v1/jobs`;
  const signal = (): AbortSignal => AbortSignal.any([stopping, AbortSignal.timeout(timeoutMs)]);
  return {
    async enqueue(article) {
      const answer = await post(root, { queue, payload: article, dedupe_key: article.article_id }, signal());
      if (answer === 'none' || answer.status >= 500) return 'later';
      if (!answer.ok) throw new Error(`the job was not taken: HTTP ${answer.status}: ${answer.text}`);
      return 'taken';
    },
    async look() {
      const { queues } = await get<Queues>(`${root}/queues`, signal());
      const ours = queues.find((one) => one.queue === queue);
      if (ours === undefined) return { waiting: 0, needingPerson: 0, deadJobId: null };
      const { jobs } = await get<DeadJobs>(`${root}/dead?queue=${queue}&page_size=1`, signal());
      return {
        waiting: ours.counts.pending + ours.counts.failed,
        needingPerson: ours.unresolved,
        deadJobId: jobs[0]?.job_id ?? null,
      };
    },
  };
}

type Queues = Readonly<{
  queues: readonly Readonly<{
    queue: string;
    unresolved: number;
    counts: Readonly<Record<'pending' | 'failed', number>>;
  }>[];
}>;
type DeadJobs = Readonly<{ jobs: readonly Readonly<{ job_id: string }>[] }>;
type Answer = Readonly<{ ok: boolean; status: number; text: string }>;

async function post(url: string, body: object, signal: AbortSignal): Promise<Answer | 'none'> {
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-actor': 'demo-newsroom' },
      body: JSON.stringify(body),
      signal,
    });
    return { ok: answer.ok, status: answer.status, text: await answer.text() };
  } catch {
    return 'none';
  }
}

async function get<T>(url: string, signal: AbortSignal): Promise<T> {
  const answer = await fetch(url, { signal });
  if (!answer.ok) throw new Error(`GET ${url}: HTTP ${answer.status}`);
  return (await answer.json()) as T;
}
