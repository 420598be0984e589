import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '../../../tests/support/eventually.ts';
import { root, startJobsApi, type ClaimedBody, type JobsApi } from '../../../tests/support/jobs-api.ts';
import { sql } from '../../platform/postgres/sql.ts';

let jobs: JobsApi;
before(async () => void (jobs = await startJobsApi()));
after(() => jobs.drop());

/** A claimed job of a new queue. */
async function claimed(
  settings: Parameters<JobsApi['queue']>[0] = {},
  more: object = {},
): Promise<ClaimedBody> {
  const queue = await jobs.queue(settings);
  await jobs.enqueue(queue);
  const [job] = await jobs.claim(queue, more);
  return job ?? assert.fail('nothing was claimed');
}

/** Adds jobs with payloads of these sizes, in queue order. */
async function enqueueLong(queue: string, count: number, bytes: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i += 1)
    ids.push(await jobs.enqueue(queue, { payload: JSON.stringify('a'.repeat(bytes - 2)) }));
  return ids;
}

describe('claiming', () => {
  test('a claimed job has its payload as stored, its counts, its epoch and its lease', async () => {
    const queue = await jobs.queue();
    const jobId = await jobs.enqueue(queue, { payload: '{"big": 12345678901234567890, "a": [1.10]}' });
    const answer = await jobs.api.post<{ jobs: readonly ClaimedBody[] }>(`${root}/queues/${queue}/claim`, {
      worker: 'w1',
    });
    assert.equal(answer.status, 200, answer.text);
    const [job] = answer.body.jobs;
    assert.deepEqual(Object.keys(job ?? {}), [
      'job_id',
      'queue',
      'payload',
      'retry_count',
      'max_retries',
      'epoch',
      'lease_until',
    ]);
    assert.deepEqual([job?.job_id, job?.queue, job?.retry_count, job?.max_retries], [jobId, queue, 0, 3]);
    assert.match(answer.text, /12345678901234567890/);
    assert.match(answer.text, /1\.10/);
    const row = await jobs.row(jobId);
    assert.deepEqual([row.status, row.lease_owner], ['running', 'pull:w1']);
    assert.equal(BigInt(job?.epoch ?? 0), row.lease_epoch);
    assert.equal(new Date(job?.lease_until ?? '').getTime(), row.lease_until?.getTime());
  });

  test('a claim returns up to the limit, one by default, in queue order', async () => {
    const queue = await jobs.queue();
    const ids = [];
    for (let i = 0; i < 4; i += 1) ids.push(await jobs.enqueue(queue));
    const first = await jobs.claim(queue);
    const rest = await jobs.claim(queue, { limit: 100 });
    assert.deepEqual(
      [...first, ...rest].map(({ job_id: id }) => id),
      ids,
    );
    assert.equal(first.length, 1);
    assert.deepEqual(await jobs.claim(queue), []);
  });

  test('a response has at most 4 MiB of payloads, and the other jobs are not claimed', async () => {
    const queue = await jobs.queue();
    const ids = await enqueueLong(queue, 4, 1_500_000);
    const first = await jobs.claim(queue, { limit: 100 });
    assert.deepEqual(
      first.map(({ job_id: id }) => id),
      ids.slice(0, 2),
    );
    for (const jobId of ids.slice(2)) {
      const { status, retry_count, deferrals, lease_owner } = await jobs.row(jobId);
      assert.deepEqual([status, retry_count, deferrals, lease_owner], ['pending', 0, 0, null]);
    }
    const rest = await jobs.claim(queue, { limit: 100 });
    assert.deepEqual(
      rest.map(({ job_id: id }) => id),
      ids.slice(2),
    );
  });

  test('even if the first ones are short', async () => {
    const queue = await jobs.queue();
    const short = await enqueueLong(queue, 16, 10);
    const long = await enqueueLong(queue, 5, 1_300_000);
    const claims = [await jobs.claim(queue, { limit: 100 }), await jobs.claim(queue, { limit: 100 })];
    assert.deepEqual(
      claims.map((claim) => claim.map(({ job_id: id }) => id)),
      [[...short, ...long.slice(0, 3)], long.slice(3)],
    );
  });

  test('a job with a longer payload is returned alone', async () => {
    const queue = await jobs.queue();
    const ids = await enqueueLong(queue, 2, 5_000_000);
    for (const jobId of ids)
      assert.deepEqual(
        (await jobs.claim(queue, { limit: 2 })).map(({ job_id: id }) => id),
        [jobId],
      );
  });

  test('a job whose payload is too large becomes a dead letter that says so, and affects no other job', async () => {
    const queue = await jobs.queue();
    const [large = '', small = ''] = await enqueueLong(queue, 2, 10);
    // As it was stored by an earlier version.
    await jobs.db.query(sql`ALTER TABLE jobs.job_queue DISABLE TRIGGER job_queue_bound_payload`);
    await jobs.db.query(sql`
      UPDATE jobs.job_queue SET payload = (SELECT jsonb_agg(1e308) FROM generate_series(1, 60000))
      WHERE job_id = ${large}`);
    await jobs.db.query(sql`ALTER TABLE jobs.job_queue ENABLE TRIGGER job_queue_bound_payload`);
    const claims = [await jobs.claim(queue, { limit: 1 }), await jobs.claim(queue, { limit: 1 })];
    assert.deepEqual(
      claims.flat().map(({ job_id: id }) => id),
      [small],
    );
    const { status, error_message } = await jobs.row(large);
    assert.equal(status, 'dead_letter');
    assert.match(error_message ?? '', /payload is larger than 16777216 bytes as text/);
    assert.deepEqual(
      jobs.settled.filter(([of]) => of === queue),
      [[queue, 'failed', 'dead_letter']],
      'it is counted and logged',
    );
  });

  test('a lease is as long as requested, but not longer than the timeout', async () => {
    const short = await claimed({ timeoutMs: 3_600_000 }, { lease_seconds: 5 });
    const capped = await claimed({ timeoutMs: 20_000 }, { lease_seconds: 3600 });
    for (const [job, ms] of [
      [short, 5000],
      [capped, 20_000],
    ] as const) {
      const row = await jobs.row(job.job_id);
      const lasts = (row.lease_until?.getTime() ?? 0) - (row.started_at?.getTime() ?? 0);
      assert.ok(Math.abs(lasts - ms) < 500, `${lasts}`);
    }
  });

  test('a worker name is cleaned of control characters', async () => {
    const { job_id: jobId } = await claimed({}, { worker: ' a\u200b\n\tb\u2028 ' });
    assert.equal((await jobs.row(jobId)).lease_owner, 'pull:a b');
  });

  test('a paused queue, an unknown one and one without due jobs return nothing', async () => {
    const queue = await jobs.queue();
    await jobs.enqueue(queue, { runAt: new Date(Date.now() + 3_600_000) });
    assert.deepEqual(await jobs.claim(queue), []);
    assert.deepEqual(await jobs.claim('nobody.knows-it'), []);
    await jobs.enqueue(queue);
    await jobs.db.query(sql`UPDATE jobs.queues SET paused = true WHERE queue = ${queue}`);
    assert.deepEqual(await jobs.claim(queue), []);
  });

  test('a waiting request is answered as soon as a job is added', async () => {
    const queue = await jobs.queue();
    const waiting = jobs.claim(queue, { wait_seconds: 30 });
    await eventually(async () => {
      const idle = await jobs.db.query(sql`
        SELECT 1 FROM platform.idle_workers WHERE channel = ${`jobs:${queue}`}`);
      assert.equal(idle.length, 1);
    });
    const jobId = await jobs.enqueue(queue);
    assert.deepEqual(
      (await waiting).map(({ job_id: id }) => id),
      [jobId],
    );
  });

  test('a waiting request returns nothing after its wait time', async () => {
    const begin = performance.now();
    assert.deepEqual(await jobs.claim(await jobs.queue(), { wait_seconds: 0.3 }), []);
    assert.ok(performance.now() - begin >= 290);
  });

  test('jobs of a client that disconnected are given back', async () => {
    const queue = await jobs.queue();
    const jobId = await jobs.enqueue(queue);
    const gone = new AbortController();
    await jobs.db.transaction(async (tx) => {
      // Blocks the request where it locks the name of its worker.
      await tx.query(sql`SELECT pg_advisory_xact_lock(hashtextextended('jobs pull:gone', 0))`);
      const left = assert.rejects(
        fetch(new URL(`${root}/queues/${queue}/claim`, jobs.url), {
          method: 'POST',
          body: JSON.stringify({ worker: 'gone' }),
          headers: { 'content-type': 'application/json' },
          signal: gone.signal,
        }),
      );
      await eventually(async () => {
        const claimed = await tx.query(sql`
          SELECT 1 FROM pg_locks l JOIN pg_database d ON d.oid = l.database
          WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted`);
        assert.equal(claimed.length, 1);
      });
      gone.abort();
      await left;
    });
    const row = await eventually(async () => {
      const found = await jobs.row(jobId);
      assert.ok(found.lease_epoch > 0n && found.status === 'pending');
      return found;
    });
    assert.deepEqual([row.deferrals, row.retry_count], [0, 0]);
  });
});

describe('a job that must run alone', () => {
  /** It crashed its worker and has one attempt left. */
  async function addKiller(queue: string): Promise<string> {
    const jobId = await jobs.enqueue(queue);
    await jobs.db.query(sql`
      UPDATE jobs.job_queue SET lease_lost = true, retry_count = 2, status = 'failed' WHERE job_id = ${jobId}`);
    return jobId;
  }

  test('it is returned by itself, and its worker gets no other job beside it', async () => {
    const queue = await jobs.queue();
    const killer = await addKiller(queue);
    const other = await jobs.enqueue(queue);
    const got = await jobs.claim(queue, { limit: 10, worker: 'alone' });
    assert.deepEqual(
      got.map(({ job_id: id }) => id),
      [killer],
    );
    assert.deepEqual(await jobs.claim(queue, { limit: 10, worker: 'alone' }), []);
    const elsewhere = await jobs.queue();
    await jobs.enqueue(elsewhere);
    assert.deepEqual(await jobs.claim(elsewhere, { worker: 'alone' }), []);
    const [next] = await jobs.claim(queue, { worker: 'another' });
    assert.equal(next?.job_id, other);
    assert.equal((await jobs.report(killer, 'complete', { epoch: got[0]?.epoch })).status, 200);
    assert.equal((await jobs.claim(elsewhere, { worker: 'alone' })).length, 1);
  });

  test('concurrent requests of one worker never give it such a job and another one', async () => {
    for (let round = 0; round < 8; round += 1) {
      const queue = await jobs.queue();
      const killer = await addKiller(queue);
      for (let i = 0; i < 6; i += 1) await jobs.enqueue(queue);
      const worker = `many-${round}`;
      const claims = await Promise.all(Array.from({ length: 6 }, () => jobs.claim(queue, { worker })));
      const claimed = claims.flat().map(({ job_id: id }) => id);
      assert.ok(
        !claimed.includes(killer) || claimed.length === 1,
        `${claimed.length} with the one that must be alone`,
      );
    }
  });

  test('a worker with another job does not get it, and the first of the busy workers gets no new jobs', async () => {
    const queue = await jobs.queue();
    const claimed: ClaimedBody[] = [];
    for (const worker of ['busy-1', 'busy-2']) {
      await jobs.enqueue(queue);
      claimed.push(...(await jobs.claim(queue, { worker })));
    }
    const killer = await addKiller(queue);
    await eventually(async () => {
      await jobs.enqueue(queue);
      const got = await jobs.claim(queue, { worker: 'busy-1' });
      claimed.push(...got);
      assert.deepEqual(got, []);
    });
    const [other] = await jobs.claim(queue, { worker: 'busy-2', limit: 100 });
    assert.ok(other !== undefined && other.job_id !== killer);
    await jobs.enqueue(queue);
    for (const { job_id: jobId, epoch } of claimed) await jobs.report(jobId, 'complete', { epoch });
    const got = await jobs.claim(queue, { worker: 'busy-1', limit: 100 });
    assert.deepEqual(
      got.map(({ job_id: id }) => id),
      [killer],
    );
  });
});
