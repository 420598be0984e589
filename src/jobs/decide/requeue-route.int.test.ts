import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertError, type Answer } from '../../../tests/support/api-client.ts';
import { hostileBodies } from '../../../tests/support/hostile-input.ts';
import { root, startJobsApi, type JobsApi } from '../../../tests/support/jobs-api.ts';
import { sql } from '../../platform/postgres/sql.ts';

let jobs: JobsApi;
before(async () => void (jobs = await startJobsApi()));
after(() => jobs.drop());

type Requeued = Readonly<{
  preview: false;
  requeued: number;
  skipped: number;
  skipped_jobs: readonly Readonly<{ job_id: string; reason: string; holder_job_id: string | null }>[];
  has_more: boolean;
}>;

type Preview = Readonly<{
  preview: true;
  matched: number;
  has_more: boolean;
  dedupe_key_taken: number;
  sample: readonly Readonly<{ job_id: string; error: string | null }>[];
}>;

function ask<Body = Requeued>(body: object, actor = 'alice'): Promise<Answer<Body>> {
  return jobs.api.post<Body>(`${root}/requeue`, body, { 'x-actor': actor });
}

async function requeue(body: object): Promise<Requeued> {
  const answer = await ask(body);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

async function deadMany(queue: string, count: number, dedupeKey: string | null = null): Promise<void> {
  await jobs.db.query(sql`
    INSERT INTO jobs.job_queue (queue, payload, status, retry_count, completed_at, error_message, dedupe_key)
    SELECT ${queue}, '{}', 'dead_letter', 3, clock_timestamp(), 'it broke', ${dedupeKey}
    FROM generate_series(1, ${count}::int)`);
}

async function statuses(queue: string): Promise<Readonly<Record<string, number>>> {
  const rows = await jobs.db.query<{ status: string; count: number }>(sql`
    SELECT status, count(*)::int AS count FROM jobs.job_queue WHERE queue = ${queue} GROUP BY status`);
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

async function actionCount(queue: string): Promise<number> {
  const rows = await jobs.db.query(sql`
    SELECT 1 FROM jobs.job_actions a JOIN jobs.job_queue j USING (job_id) WHERE j.queue = ${queue}`);
  return rows.length;
}

describe('filters of dead letters', () => {
  test('a filter matches by queue, error prefix, time and id combined', async () => {
    const [queue, other] = [await jobs.queue(), await jobs.queue()];
    const timeout = await jobs.dead(queue, { error: 'timed out after 5 ms' });
    const broken = await jobs.dead(queue, { error: 'broken: timed out' });
    const elsewhere = await jobs.dead(other, { error: 'timed out after 9 ms' });
    await jobs.db.query(
      sql`UPDATE jobs.job_queue SET created_at = '2026-01-15T12:00:00Z' WHERE job_id = ${broken}`,
    );
    const matched = async (filter: object): Promise<readonly string[]> => {
      const { body } = await ask<Preview>({ ...filter, preview: true });
      assert.equal(body.matched, body.sample.length);
      return body.sample.map(({ job_id: id }) => id);
    };
    assert.deepEqual(await matched({ queue }), [timeout, broken]);
    assert.deepEqual(await matched({ error: 'timed out' }), [timeout, elsewhere]);
    assert.deepEqual(await matched({ error: 'timed out', queue }), [timeout]);
    assert.deepEqual(await matched({ error: '%' }), []);
    assert.deepEqual(await matched({ created_to: '2026-01-16T00:00:00Z' }), [broken]);
    assert.deepEqual(await matched({ queue, created_from: '2026-01-16T00:00:00+00:00' }), [timeout]);
    assert.deepEqual(
      await matched({ queue, created_from: '2026-01-15T12:00:00Z', created_to: '2026-01-15T12:00:00Z' }),
      [],
    );
    assert.deepEqual(await matched({ job_ids: [broken.toUpperCase(), elsewhere] }), [broken, elsewhere]);
    assert.deepEqual(await matched({ job_ids: [broken, elsewhere], queue: other }), [elsewhere]);
  });

  test('cancelled and discarded jobs match only by their id', async () => {
    const queue = await jobs.queue();
    const cancelled = await jobs.enqueue(queue);
    await jobs.act(cancelled, 'cancel');
    const discarded = await jobs.dead(queue);
    await jobs.act(discarded, 'discard');
    const waiting = await jobs.enqueue(queue);
    assert.equal((await requeue({ queue })).requeued, 0);
    assert.equal((await requeue({ queue, job_ids: [discarded, waiting] })).requeued, 1);
    assert.equal((await jobs.row(discarded)).status, 'pending');
    assert.equal((await jobs.row(cancelled)).status, 'dead_letter');
  });
});

describe('requeueing by filter', () => {
  test('a preview counts, returns a sample, and changes nothing', async () => {
    const queue = await jobs.queue();
    await deadMany(queue, 25);
    await jobs.dead(queue, { dedupeKey: 'taken' });
    await jobs.enqueue(queue, { dedupeKey: 'taken' });
    const answer = await ask<Preview>({ queue, preview: true });
    assert.deepEqual(
      [answer.body.preview, answer.body.matched, answer.body.dedupe_key_taken, answer.body.has_more],
      [true, 26, 1, false],
    );
    assert.equal(answer.body.sample.length, 10);
    assert.deepEqual(await statuses(queue), { dead_letter: 26, pending: 1 });
    assert.equal(await actionCount(queue), 0);
  });

  test('all matching jobs are pending again, with the actor recorded; a repeated request finds none', async () => {
    const queue = await jobs.queue();
    await deadMany(queue, 250);
    const done = await requeue({ queue, reason: 'fixed' });
    assert.deepEqual(done, { preview: false, requeued: 250, skipped: 0, skipped_jobs: [], has_more: false });
    assert.deepEqual(await statuses(queue), { pending: 250 });
    const rows = await jobs.db.query<{ actors: number; epochs: number }>(sql`
      SELECT count(DISTINCT a.actor)::int AS actors, count(DISTINCT j.lease_epoch)::int AS epochs
      FROM jobs.job_actions a JOIN jobs.job_queue j USING (job_id)
      WHERE j.queue = ${queue} AND a.actor = 'alice' AND a.reason = 'fixed'
        AND j.retry_count = 0 AND j.completed_at IS NULL`);
    assert.deepEqual(rows, [{ actors: 1, epochs: 250 }]);
    assert.equal((await requeue({ queue })).requeued, 0);
  });

  test('the limit applies, oldest first, and has_more is set', async () => {
    const queue = await jobs.queue();
    const ids = [];
    for (let i = 0; i < 4; i += 1) ids.push(await jobs.dead(queue));
    const first = await requeue({ queue, limit: 3 });
    assert.deepEqual([first.requeued, first.has_more], [3, true]);
    // Jobs of the same millisecond have no order.
    assert.equal((await jobs.row(ids.toSorted()[3] ?? '')).status, 'dead_letter');
    const second = await requeue({ queue, limit: 3 });
    assert.deepEqual([second.requeued, second.has_more], [1, false]);
  });

  test('jobs whose dedupe key is taken do not use up the limit, however often it is requested', async () => {
    const queue = await jobs.queue();
    await deadMany(queue, 3, 'k');
    const holder = await jobs.enqueue(queue, { dedupeKey: 'k' });
    await deadMany(queue, 3);
    const first = await requeue({ queue, limit: 2 });
    assert.deepEqual([first.requeued, first.skipped, first.has_more], [2, 3, true]);
    assert.ok(first.skipped_jobs.every(({ holder_job_id: id }) => id === holder));
    const second = await requeue({ queue, limit: 2 });
    assert.deepEqual([second.requeued, second.skipped, second.has_more], [1, 3, false]);
  });

  test('concurrent requests requeue each dead letter once', async () => {
    const queue = await jobs.queue();
    await deadMany(queue, 400);
    const answers = await Promise.all(Array.from({ length: 4 }, () => requeue({ queue })));
    const total = answers.reduce((sum, { requeued }) => sum + requeued, 0);
    assert.equal(total, 400);
    assert.deepEqual(await statuses(queue), { pending: 400 });
    assert.equal(await actionCount(queue), 400);
  });

  test('a job whose dedupe key is taken is skipped and its holder is named; of several with one key the first is requeued', async () => {
    const queue = await jobs.queue();
    const taken = await jobs.dead(queue, { dedupeKey: 'a' });
    const first = await jobs.dead(queue, { dedupeKey: 'b' });
    const second = await jobs.dead(queue, { dedupeKey: 'b' });
    const free = await jobs.dead(queue, { dedupeKey: 'c' });
    const holder = await jobs.enqueue(queue, { dedupeKey: 'a' });
    const done = await requeue({ queue });
    assert.deepEqual([done.requeued, done.skipped], [2, 2]);
    assert.deepEqual(done.skipped_jobs, [
      { job_id: taken, reason: 'dedupe_key_taken', holder_job_id: holder },
      { job_id: second, reason: 'dedupe_key_taken', holder_job_id: first },
    ]);
    assert.equal((await jobs.row(free)).status, 'pending');
    assert.equal((await jobs.row(taken)).status, 'dead_letter');
  });

  test('the list of skipped jobs is limited', async () => {
    const queue = await jobs.queue();
    await deadMany(queue, 250, 'k');
    const done = await requeue({ queue });
    assert.deepEqual([done.requeued, done.skipped, done.skipped_jobs.length], [1, 249, 100]);
  });

  test('concurrent requests over the same keys leave one pending job per key', async () => {
    const queue = await jobs.queue();
    for (let i = 0; i < 60; i += 1) await deadMany(queue, 3, `key-${i}`);
    const answers = await Promise.all(
      [{ queue }, { queue, error: 'it' }, { queue, limit: 90 }].map((filter) => requeue(filter)),
    );
    const total = answers.reduce((sum, { requeued }) => sum + requeued, 0);
    assert.equal(total, 60);
    assert.deepEqual(await statuses(queue), { pending: 60, dead_letter: 120 });
  });

  test('a locked job does not delay the others, and is reported as skipped', async () => {
    const queue = await jobs.queue();
    await deadMany(queue, 5);
    const jobId = await jobs.dead(queue, { dedupeKey: 'k' });
    await deadMany(queue, 5);
    await jobs.db.transaction(async (tx) => {
      await tx.query(sql`SELECT jobs.enqueue(${queue}, '{}', 'k')`);
      // The server ends transactions that are idle for too long.
      const alive = setInterval(() => void tx.query(sql`SELECT 1`), 1000);
      const done = await requeue({ queue }).finally(() => clearInterval(alive));
      assert.equal(done.requeued, 10);
      assert.deepEqual(done.skipped_jobs, [{ job_id: jobId, reason: 'busy', holder_job_id: null }]);
    });
  });
});

test('hostile filters are rejected, and nothing is requeued', async () => {
  const queue = await jobs.queue();
  await deadMany(queue, 1);
  const bodies: readonly unknown[] = [
    undefined,
    null,
    {},
    { limit: 5 },
    { preview: true },
    { reason: 'x' },
    { queue: '' },
    { queue: 'Not a name' },
    { queue: 'a'.repeat(101) },
    { queue: [queue] },
    { queue, error: '' },
    { queue, error: 'x'.repeat(4001) },
    { queue, created_from: 'yesterday' },
    { queue, created_to: '2026-02-30T00:00:00Z' },
    { queue, created_to: '2026-02-20T00:00:00' },
    { queue, job_ids: [] },
    { queue, job_ids: ['x'] },
    { queue, job_ids: Array.from({ length: 1001 }, () => '01900000-0000-7000-8000-000000000000') },
    { queue, limit: 0 },
    { queue, limit: 10_001 },
    { queue, preview: 'yes' },
    { queue, reason: ' ' },
    { queue, status: 'dead_letter' },
  ];
  for (const body of bodies)
    assertError(await jobs.api.post(`${root}/requeue`, body), 400, 'SYS_JOBS_VALIDATION_ERROR');
  for (const { name, body } of hostileBodies) {
    const headers = { 'content-type': 'application/json' };
    const answer = await jobs.api.raw({ method: 'POST', path: `${root}/requeue`, headers, body });
    assert.ok(answer.status >= 400 && answer.status < 500, `${name}: ${answer.text}`);
  }
  assert.deepEqual(await statuses(queue), { dead_letter: 1 });
});
