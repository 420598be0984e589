import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import {
  fastQueue,
  startJobsSystem,
  storedJob,
  storedJobs,
  type JobsSystem,
} from '../support/jobs-system.ts';
import { startPartner, type Partner, type PartnerAct, type SeenRequest } from '../support/partner.ts';

type Scene = JobsSystem &
  Readonly<{
    partner: Partner;
    requestsOf(jobId: string): readonly SeenRequest[];
    startReplica(): Promise<void>;
  }>;

/** A queue `push`, and one beside it, whose target does with a job what its payload says, one act after another. */
async function startScene(t: TestContext, queue: Readonly<Record<string, unknown>> = {}): Promise<Scene> {
  const partner = await startPartner({
    honoursKeys: false,
    script: ({ body, attempt }) => {
      const { does } = (JSON.parse(body) as { payload: { does?: readonly PartnerAct[] } }).payload;
      return does?.slice(0, attempt).at(-1) ?? { act: 'ok' };
    },
  });
  t.after(() => partner.stop());
  const target = { type: 'http', url: partner.url, headers: { 'X-Tenant': 'blue' } };
  const queues = {
    push: { ...fastQueue, timeout_ms: 10_000, concurrency: 8, ...queue, target },
    beside: { target },
  };
  const jobs = await startJobsSystem({ queues });
  const replicas: JobsSystem[] = [];
  t.after(async () => {
    await Promise.all(replicas.map((replica) => replica.drop()));
    await jobs.drop();
  });
  return {
    ...jobs,
    job: (more) => jobs.job({ queue: 'push', payload: {}, ...more }),
    partner,
    requestsOf: (jobId) => partner.requests.filter(({ key }) => key === jobId),
    async startReplica() {
      replicas.push(await startJobsSystem({ queues, database: jobs.system.database }));
    },
  };
}

const status = (code: number, headers: Readonly<Record<string, string>> = {}): PartnerAct => ({
  act: 'status',
  status: code,
  effect: false,
  headers,
});

test('a job is pushed to its target, and the answer is its result', async (t) => {
  const { job, becomes, requestsOf, partner } = await startScene(t);
  const jobId = await job({ payload: { n: 1 } });
  const row = await becomes(jobId, 'completed');
  const [request] = requestsOf(jobId);
  assert.deepEqual(
    { ...JSON.parse(request?.body ?? ''), epoch: 'some' },
    { job_id: jobId, queue: 'push', payload: { n: 1 }, attempt: 1, epoch: 'some' },
  );
  assert.equal(request?.headers['x-tenant'], 'blue');
  assert.deepEqual(row.result, JSON.parse(partner.ledger.get(jobId)?.answer ?? ''));
  assert.ok(row.started_at !== null && row.completed_at !== null);
  assert.equal(partner.ledger.get(jobId)?.count, 1);
});

test('numbers of a payload reach the target digit by digit, also from a queue that is limited', async (t) => {
  const { becomes, requestsOf, system } = await startScene(t, { global_concurrency: 2 });
  const payload = '{"id": 12345678901234567890, "huge": 1e400, "price": 1.10}';
  for (const queue of ['push', 'beside']) {
    const [row] = await system.db.query<{ id: string; stored: string }>(sql`
      SELECT job_id AS id, ${payload}::jsonb::text AS stored FROM jobs.enqueue(${queue}, ${payload}::jsonb)`);
    assert.ok(row);
    await becomes(row.id, 'completed');
    const body = requestsOf(row.id)[0]?.body ?? '';
    assert.ok(body.includes(`"payload":${row.stored},`), body);
    assert.match(row.stored, /"id": 12345678901234567890.*"price": 1\.10/);
  }
});

test('what the target answers decides: come again, never again, or later at no cost', async (t) => {
  const { job, becomes, requestsOf } = await startScene(t);
  const does = (...acts: readonly PartnerAct[]) => job({ payload: { does: acts } });
  const [again, reset, never, moved, broken] = await Promise.all([
    does(status(500), { act: 'ok' }),
    does({ act: 'reset', when: 'before_answer' }, { act: 'ok' }),
    does(status(404)),
    does({ act: 'redirect' }),
    does(status(500)),
  ]);
  assert.equal((await becomes(again, 'completed')).retry_count, 1);
  assert.equal((await becomes(reset, 'completed')).retry_count, 1);
  const dead = await becomes(never, 'dead_letter');
  assert.deepEqual([dead.retry_count, requestsOf(never).length], [1, 1]);
  assert.match(dead.error_message ?? '', /^HTTP 404/);
  assert.match(
    (await becomes(moved, 'dead_letter')).error_message ?? '',
    /^HTTP 307, redirects are not followed/,
  );
  assert.equal((await becomes(broken, 'dead_letter')).retry_count, 3);
  assert.deepEqual(
    requestsOf(broken).map(({ body }) => (JSON.parse(body) as { attempt: number }).attempt),
    [1, 2, 3],
  );
});

test('a busy target costs no attempt, is asked again after the time that it named, and is called more slowly', async (t) => {
  const { job, becomes, requestsOf, system } = await startScene(t);
  const busy = await job({
    payload: {
      does: [{ act: 'later', status: 429, afterS: 2 }, { act: 'later', status: 503 }, { act: 'ok' }],
    },
  });
  const throttle = await eventually(async () => {
    const [row] = await system.db.query<{ throttle: { rate: number } | null }>(sql`
      SELECT throttle FROM jobs.queues WHERE queue = 'push'`);
    return row?.throttle ?? assert.fail('nobody is slowed down');
  });
  assert.equal(throttle.rate, 1, 'never below one a second');
  const row = await becomes(busy, 'completed');
  assert.deepEqual([row.retry_count, row.deferrals, row.error_message], [0, 2, null]);
  const [first, second] = requestsOf(busy);
  assert.ok((second?.atMs ?? 0) - (first?.atMs ?? 0) >= 2000);
  await eventually(async () => {
    await job();
    const [queue] = await system.db.query<{ throttle: unknown }>(sql`
      SELECT throttle FROM jobs.queues WHERE queue = 'push'`);
    assert.equal(queue?.throttle, null, 'quiet seconds end it');
  });
});

test('a body that never ends ends with the timeout, which costs an attempt and slows nobody', async (t) => {
  const { job, becomes, system } = await startScene(t, { timeout_ms: 400, max_retries: 2 });
  const endless = await job({ payload: { does: [{ act: 'endless_body', effect: false }] } });
  const hanging = await job({ payload: { does: [{ act: 'hang', effect: false }] } });
  for (const jobId of [endless, hanging]) {
    const row = await becomes(jobId, 'dead_letter');
    assert.deepEqual([row.retry_count, row.error_message], [2, 'timed out after 400 ms']);
  }
  const [queue] = await system.db.query<{ throttle: unknown }>(sql`
    SELECT throttle FROM jobs.queues WHERE queue = 'push'`);
  assert.equal(queue?.throttle, null);
});

test('a job that is cancelled while its target works on it is hung up on, and makes room for the next', async (t) => {
  const { job, becomes, requestsOf, system } = await startScene(t, { timeout_ms: 600_000, concurrency: 1 });
  const hanging = await job({ payload: { does: [{ act: 'hang', effect: false }] } });
  await eventually(() => assert.equal(requestsOf(hanging).length, 1));
  const next = await job();
  const answer = await system.api.post(`/api/v1/jobs/${hanging}/cancel`, { reason: 'not wanted' });
  assert.equal(answer.status, 200, answer.text);
  await becomes(next, 'completed');
  const { status: now, resolution, error_message: error } = await storedJob(system.db, hanging);
  assert.deepEqual([now, resolution, error], ['dead_letter', 'cancelled', 'cancelled: not wanted']);
});

test('no more jobs run at once than the queue may have in all, however many replicas push', async (t) => {
  const { job, become, partner, startReplica } = await startScene(t, { global_concurrency: 2 });
  await startReplica();
  const ids = await Promise.all(
    Array.from({ length: 6 }, () => job({ payload: { does: [{ act: 'hold' }] } })),
  );
  for (const came of [2, 4, 6]) {
    await eventually(() => assert.equal(partner.requestCount(), came));
    partner.release();
  }
  await become(ids, 'completed');
});

test('a stop waits for the answer of what is under way, and leaves nothing half done', async (t) => {
  const { job, partner, system } = await startScene(t, { concurrency: 1 });
  const running = await job({ payload: { does: [{ act: 'hold' }] } });
  await eventually(() => assert.equal(partner.requestCount(), 1));
  const next = await job();
  const stopped = system.stop();
  partner.release();
  await stopped;
  const rows = await storedJobs(system.db, [running, next]);
  assert.equal(rows[0]?.status, 'completed');
  for (const row of rows) assert.deepEqual([row.lease_owner, row.retry_count], [null, 0], row.status);
});

test('a rate holds for pushed jobs, and what is over it waits for the next window', async (t) => {
  const { job, become, partner } = await startScene(t, { rate_limit: '10/s' });
  const ids = await Promise.all(Array.from({ length: 30 }, () => job()));
  await become(ids, 'completed');
  const times = partner.requests.map(({ atMs }) => atMs);
  const tookMs = Math.max(...times) - Math.min(...times);
  // Three windows: the second one lies between the first job and the last.
  assert.ok(tookMs >= 900, `${tookMs} ms`);
  assert.equal(times.length, ids.length);
});

test('a paused queue pushes nothing, and goes on where it stopped', async (t) => {
  const { job, becomes, requestsOf, partner, system } = await startScene(t);
  assert.equal((await system.api.post('/api/v1/jobs/queues/push/pause', {})).status, 200);
  const jobId = await job();
  await becomes(await job({ queue: 'beside' }), 'completed');
  await becomes(await job({ queue: 'beside' }), 'completed');
  assert.deepEqual([requestsOf(jobId), partner.requestCount()], [[], 2]);
  assert.equal((await system.api.post('/api/v1/jobs/queues/push/resume', {})).status, 200);
  await becomes(jobId, 'completed');
});
