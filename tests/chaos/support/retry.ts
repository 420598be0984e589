import type { Scene } from './scene.ts';
import type { Answer, Replica } from './start-replica.ts';

export type RetryAllAnswer = Readonly<{ status: number; retried: number; failed: number }>;

/** Null when the process has died on the way. */
export async function retryAll({ originalTopic }: Scene, replica: Replica): Promise<RetryAllAnswer | null> {
  const answer = await replica.post(`/api/v1/dlq/${originalTopic}/retry-all`);
  if (answer === null) return null;
  const { retried = 0, failed = 0 } = answer.body as Partial<RetryAllAnswer>;
  return { status: answer.status, retried, failed };
}

/** Null when the process has died on the way. */
export async function retryOne(id: string, replica: Replica): Promise<Answer | null> {
  return replica.post(`/api/v1/dlq/messages/${id}/retry`);
}
