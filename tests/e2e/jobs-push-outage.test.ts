import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { fastQueue, startJobsSystem, type JobsSystem } from '../support/jobs-system.ts';

/** A target that can be taken away and brought back, and that answers as the test says. */
type Target = Readonly<{
  url: string;
  /** The payloads that it was sent, in their order. */
  seen: readonly string[];
  answer(status: (payload: string) => number): void;
  takeAway(): Promise<void>;
  bringBack(): Promise<void>;
}>;

async function startTarget(t: TestContext): Promise<Target> {
  const seen: string[] = [];
  let statusOf: (payload: string) => number = () => 200;
  const listen = async (port: number): Promise<Server> => {
    const server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => void (body += text));
      request.on('end', () => {
        const payload = String((JSON.parse(body) as { payload: unknown }).payload);
        seen.push(payload);
        response.writeHead(statusOf(payload)).end();
      });
    }).listen(port, '127.0.0.1');
    await once(server, 'listening');
    return server;
  };
  let server = await listen(0);
  const { port } = server.address() as AddressInfo;
  const takeAway = async (): Promise<void> => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  t.after(takeAway);
  return {
    url: `http://127.0.0.1:${port}/`,
    seen,
    answer: (status) => void (statusOf = status),
    takeAway,
    bringBack: async () => void (server = await listen(port)),
  };
}

async function startScene(t: TestContext, replicas: number): Promise<JobsSystem & { target: Target }> {
  const target = await startTarget(t);
  const queues = { push: { ...fastQueue, concurrency: 4, target: { type: 'http', url: target.url } } };
  const jobs = await startJobsSystem({ queues });
  const others: JobsSystem[] = [];
  t.after(async () => {
    await Promise.all(others.map((other) => other.drop()));
    await jobs.drop();
  });
  for (let n = 1; n < replicas; n += 1)
    others.push(await startJobsSystem({ queues, database: jobs.system.database }));
  return { ...jobs, target };
}

type Circuit = Readonly<{ opened_at_ms: number | null; next_probe_at_ms: number; interval_ms: number }>;

async function circuitIn({ system }: JobsSystem): Promise<Circuit | null> {
  const [row] = await system.db.query<{ circuit: Circuit | null }>(sql`
    SELECT circuit FROM jobs.queues WHERE queue = 'push'`);
  return row?.circuit ?? null;
}

async function spentIn({ system }: JobsSystem): Promise<Readonly<{ spent: number; dead: number }>> {
  const [row] = await system.db.query<{ spent: number; dead: number }>(sql`
    SELECT COALESCE(sum(retry_count), 0)::int AS spent,
           count(*) FILTER (WHERE status = 'dead_letter')::int AS dead
    FROM jobs.job_queue WHERE queue = 'push'`);
  return row ?? assert.fail();
}

for (const [outage, replicas] of [
  ['nobody is there', 1],
  ['nobody is there', 2],
  ['every answer is 500', 2],
] as const)
  test(`an outage makes no dead letters: ${outage}, for ${replicas} replicas`, async (t) => {
    const scene = await startScene(t, replicas);
    const { target, job, become } = scene;
    if (outage === 'nobody is there') await target.takeAway();
    else target.answer(() => 500);
    // Each would be dead after two failures, which are due within milliseconds.
    const ids = await Promise.all(
      Array.from({ length: 30 }, (_, n) => job({ queue: 'push', payload: `job-${n}`, max_retries: 2 })),
    );
    // Longer than all retries of all jobs would have taken: two probes have failed.
    await eventually(async () => assert.ok(((await circuitIn(scene))?.interval_ms ?? 0) >= 4000));
    const { spent, dead } = await spentIn(scene);
    assert.equal(dead, 0);
    assert.ok(spent <= 4, `${spent} attempts were spent before it was known`);
    // Calls that were under way, and probes, but nothing else.
    assert.ok(target.seen.length <= 4 * replicas + 8, `${target.seen.length} calls`);
    const queues = await scene.system.api.get<{ queues: { queue: string; target_down: unknown }[] }>(
      '/api/v1/jobs/queues',
    );
    assert.ok(queues.body.queues.find(({ queue }) => queue === 'push')?.target_down !== null);

    target.answer(() => 200);
    if (outage === 'nobody is there') await target.bringBack();
    const rows = await become(ids, 'completed');
    assert.ok(rows.every(({ retry_count: failures }) => failures <= 2));
    assert.equal(await circuitIn(scene), null);
  });

test('a job that alone fails is dead after its retries, beside others and by itself', async (t) => {
  const scene = await startScene(t, 1);
  const { target, job, become, becomes } = scene;
  target.answer((payload) => (payload === 'poison' ? 500 : 200));
  const beside = await job({ queue: 'push', payload: 'poison', max_retries: 3 });
  const healthy = await Promise.all(
    Array.from({ length: 10 }, (_, n) => job({ queue: 'push', payload: `job-${n}` })),
  );
  await become(healthy, 'completed');
  assert.equal((await becomes(beside, 'dead_letter')).retry_count, 3);
  const alone = await job({ queue: 'push', payload: 'poison', max_retries: 4 });
  assert.equal((await becomes(alone, 'dead_letter')).retry_count, 4);
  assert.equal((await circuitIn(scene))?.opened_at_ms ?? null, null);
});
