import type { Answer, Replica } from './start-replica.ts';
import { until } from './until.ts';

export type Readiness = Readonly<{
  status: 'healthy' | 'degraded' | 'unhealthy';
  checks: Readonly<Record<string, Readonly<{ status: string; message?: string }>>>;
}>;

/** Resolves with the first answer of /readyz that has the status, within a few seconds. */
export async function untilReadiness(
  replica: Replica,
  status: Readiness['status'],
  withinMs = 60_000,
): Promise<Answer & Readonly<{ body: Readiness }>> {
  let last: Answer | null = null;
  return until(
    `the replica says that it is ${status}`,
    async () => {
      last = await replica.get('/readyz');
      const body = last?.body as Readiness | undefined;
      return last !== null && body?.status === status ? { ...last, body } : null;
    },
    { withinMs, explain: () => `last: ${JSON.stringify(last)}\n${replica.log()}` },
  );
}
