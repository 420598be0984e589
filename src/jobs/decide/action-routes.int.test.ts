import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertError, sortedStatuses } from '../../../tests/support/api-client.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { hostileBodies, hostileSegments } from '../../../tests/support/hostile-input.ts';
import { root, startJobsApi, type JobsApi } from '../../../tests/support/jobs-api.ts';
import { sql } from '../../platform/postgres/sql.ts';

let jobs: JobsApi;
before(async () => void (jobs = await startJobsApi()));
after(() => jobs.drop());

const unknownId = '01900000-0000-7000-8000-000000000000';

type ActionRow = Readonly<{
  action: string;
  status_from: string;
  status_to: string;
  actor: string;
  reason: string | null;
}>;

function actionsOf(jobId: string): Promise<readonly ActionRow[]> {
  return jobs.db.query<ActionRow>(sql`
    SELECT action, status_from, status_to, actor, reason FROM jobs.job_actions WHERE job_id = ${jobId} ORDER BY id`);
}

/** Notifications about it. */
async function toldOf(jobId: string): Promise<number> {
  const rows = await jobs.db.query(sql`SELECT 1 FROM platform.notify_events WHERE item_id = ${jobId}`);
  return rows.length;
}

describe('requeueing', () => {
  test('a dead letter is pending again with a fresh retry count and a new epoch', async () => {
    const queue = await jobs.queue();
    const jobId = await jobs.dead(queue);
    await jobs.db.query(
      sql`UPDATE jobs.job_queue SET deferrals = 9, lease_lost = true WHERE job_id = ${jobId}`,
    );
    const { lease_epoch: epoch } = await jobs.row(jobId);
    const answer = await jobs.act(jobId, 'requeue', { reason: 'the mail server is back' }, 'alice');
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(answer.body, { job_id: jobId, status: 'pending' });
    const row = await jobs.row(jobId);
    assert.deepEqual(
      [row.status, row.retry_count, row.deferrals, row.resolution, row.completed_at],
      ['pending', 0, 0, null, null],
    );
    assert.ok(row.lease_epoch > epoch);
    assert.deepEqual(await actionsOf(jobId), [
      {
        action: 'requeue',
        status_from: 'dead_letter',
        status_to: 'pending',
        actor: 'alice',
        reason: 'the mail server is back',
      },
    ]);
    assert.equal((await jobs.claim(queue))[0]?.job_id, jobId);
  });

  test('it wakes a waiting worker', async () => {
    const queue = await jobs.queue();
    const jobId = await jobs.dead(queue);
    const channel = `jobs:${queue}`;
    const woken = jobs.wake.wait(channel, 60_000, AbortSignal.timeout(60_000));
    await eventually(async () => {
      const idle = await jobs.db.query(sql`SELECT 1 FROM platform.idle_workers WHERE channel = ${channel}`);
      assert.equal(idle.length, 1);
    });
    await jobs.act(jobId, 'requeue');
    await woken;
  });

  test('a late report of the previous worker is stale', async () => {
    const queue = await jobs.queue();
    await jobs.enqueue(queue, { maxRetries: 1 });
    const [job] = await jobs.claim(queue);
    const jobId = job?.job_id ?? '';
    const body = { epoch: job?.epoch, error: 'x' };
    assert.equal((await jobs.report(jobId, 'fail', body)).body.status, 'dead_letter');
    await jobs.act(jobId, 'requeue');
    assertError(await jobs.report(jobId, 'fail', body), 409, 'SYS_JOBS_STALE');
    assert.equal((await jobs.row(jobId)).status, 'pending');
  });

  test('a job that is not dead is a conflict that names its status, and an unknown job is not found', async () => {
    const queue = await jobs.queue();
    const jobId = await jobs.enqueue(queue);
    const { message } = assertError(await jobs.act(jobId, 'requeue'), 409, 'SYS_JOBS_CONFLICT');
    assert.match(message, /cannot be requeued: status=pending, resolution=none, retry_count=0\/3/);
    assert.deepEqual(await actionsOf(jobId), []);
    for (const action of ['requeue', 'discard', 'cancel'])
      assertError(await jobs.act(unknownId, action), 404, 'SYS_JOBS_NOT_FOUND');
  });

  test('of many concurrent requests one succeeds', async () => {
    const jobId = await jobs.dead(await jobs.queue());
    const answers = await Promise.all(Array.from({ length: 6 }, () => jobs.act(jobId, 'requeue')));
    assert.deepEqual(sortedStatuses(answers), [200, 409, 409, 409, 409, 409]);
    assert.equal((await actionsOf(jobId)).length, 1);
  });

  test('a taken dedupe key is a conflict that names the other job', async () => {
    const queue = await jobs.queue();
    const jobId = await jobs.dead(queue, { dedupeKey: 'article-7' });
    const holder = await jobs.enqueue(queue, { dedupeKey: 'article-7' });
    const { message, details } = assertError(await jobs.act(jobId, 'requeue'), 409, 'SYS_JOBS_CONFLICT');
    assert.match(message, new RegExp(`dedupe key is taken: job_id=${holder}`));
    assert.deepEqual([details[0]?.field, details[0]?.message], ['dedupe_key', holder]);
    assert.equal((await jobs.row(jobId)).status, 'dead_letter');
    assert.deepEqual(await actionsOf(jobId), []);
    await jobs.act(holder, 'cancel');
    assert.equal((await jobs.act(jobId, 'requeue')).status, 200);
  });

  test('of two dead letters with one key requeued at once, one succeeds and the other is a conflict', async () => {
    for (let round = 0; round < 5; round += 1) {
      const queue = await jobs.queue();
      const ids = [await jobs.dead(queue, { dedupeKey: 'k' }), await jobs.dead(queue, { dedupeKey: 'k' })];
      const answers = await Promise.all(ids.map((id) => jobs.act(id, 'requeue')));
      assert.deepEqual(sortedStatuses(answers), [200, 409]);
    }
  });

  test('a key that an open transaction is taking is reported as busy, not as an outage', async () => {
    const queue = await jobs.queue();
    const jobId = await jobs.dead(queue, { dedupeKey: 'k' });
    await jobs.db.transaction(async (tx) => {
      await tx.query(sql`SELECT jobs.enqueue(${queue}, '{}', 'k')`);
      const answer = await jobs.act(jobId, 'requeue');
      assertError(answer, 409, 'SYS_JOBS_BUSY');
      assert.equal(answer.headers.get('retry-after'), '1');
    });
    assertError(await jobs.act(jobId, 'requeue'), 409, 'SYS_JOBS_CONFLICT');
  });
});

describe('discarding', () => {
  test('a dead letter stays one, and is resolved', async () => {
    const jobId = await jobs.dead(await jobs.queue());
    const before = await jobs.row(jobId);
    const answer = await jobs.act(jobId, 'discard', { reason: 'spam' });
    assert.deepEqual(answer.body, { job_id: jobId, status: 'dead_letter' });
    assert.deepEqual(await jobs.row(jobId), { ...before, resolution: 'discarded' });
    assert.deepEqual(
      (await actionsOf(jobId)).map(({ action, actor, reason }) => [action, actor, reason]),
      [['discard', 'anonymous', 'spam']],
    );
    const again = assertError(await jobs.act(jobId, 'discard'), 409, 'SYS_JOBS_CONFLICT');
    assert.match(again.message, /resolution=discarded/);
    assert.equal((await jobs.act(jobId, 'requeue')).status, 200, 'it can still be requeued');
  });

  test('only dead letters can be discarded', async () => {
    const queue = await jobs.queue();
    const jobId = await jobs.enqueue(queue);
    assertError(await jobs.act(jobId, 'discard'), 409, 'SYS_JOBS_CONFLICT');
    await jobs.claim(queue);
    assertError(await jobs.act(jobId, 'discard'), 409, 'SYS_JOBS_CONFLICT');
  });
});

describe('cancelling', () => {
  test('a waiting job is dead at once, with the reason and without a notification', async () => {
    const queue = await jobs.queue();
    const jobId = await jobs.enqueue(queue);
    const answer = await jobs.act(jobId, 'cancel', { reason: 'not wanted any more' }, 'bob');
    assert.deepEqual(answer.body, { job_id: jobId, status: 'dead_letter' });
    const row = await jobs.row(jobId);
    assert.deepEqual(
      [row.status, row.resolution, row.error_message, row.retry_count],
      ['dead_letter', 'cancelled', 'cancelled: not wanted any more', 0],
    );
    assert.notEqual(row.completed_at, null);
    assert.deepEqual(await jobs.claim(queue), []);
    assert.equal(await toldOf(jobId), 0);
    assert.deepEqual(
      (await actionsOf(jobId)).map(({ action, status_from: from, actor }) => [action, from, actor]),
      [['cancel', 'pending', 'bob']],
    );
  });

  test('without a reason the error names the actor', async () => {
    const jobId = await jobs.enqueue(await jobs.queue());
    await jobs.act(jobId, 'cancel', undefined, 'bob');
    assert.equal((await jobs.row(jobId)).error_message, 'cancelled: by bob');
  });

  test('a running job is taken from its worker, which is notified if it listens', async () => {
    const queue = await jobs.queue();
    const jobId = await jobs.enqueue(queue);
    const [job] = await jobs.claim(queue);
    const channel = `jobs-cancelled:${queue}`;
    const woken = jobs.wake.wait(channel, 60_000, AbortSignal.timeout(60_000));
    await eventually(async () => {
      const idle = await jobs.db.query(sql`SELECT 1 FROM platform.idle_workers WHERE channel = ${channel}`);
      assert.equal(idle.length, 1);
    });
    assert.equal((await jobs.act(jobId, 'cancel')).status, 200);
    await woken;
    const row = await jobs.row(jobId);
    assert.deepEqual([row.lease_owner, row.lease_until], [null, null]);
    const before = jobs.stale();
    for (const [what, more] of [
      ['heartbeat', {}],
      ['complete', {}],
      ['fail', { error: 'x' }],
    ] as const)
      assertError(await jobs.report(jobId, what, { epoch: job?.epoch, ...more }), 409, 'SYS_JOBS_STALE');
    assert.equal(jobs.stale(), before + 3);
    assert.deepEqual(await jobs.row(jobId), row);
    assert.equal(await jobs.store.reap(), 0);
  });

  test('a finished job cannot be cancelled', async () => {
    const queue = await jobs.queue();
    await jobs.enqueue(queue);
    const [job] = await jobs.claim(queue);
    const jobId = job?.job_id ?? '';
    await jobs.report(jobId, 'complete', { epoch: job?.epoch });
    const done = assertError(await jobs.act(jobId, 'cancel'), 409, 'SYS_JOBS_CONFLICT');
    assert.match(done.message, /cannot be cancelled: status=completed/);
    const dead = await jobs.dead(queue);
    assertError(await jobs.act(dead, 'cancel'), 409, 'SYS_JOBS_CONFLICT');
  });

  test('it frees the dedupe key', async () => {
    const queue = await jobs.queue();
    const jobId = await jobs.enqueue(queue, { dedupeKey: 'k' });
    await jobs.act(jobId, 'cancel');
    assert.notEqual(await jobs.enqueue(queue, { dedupeKey: 'k' }), jobId);
  });

  test('of a concurrent cancel and completion one succeeds', async () => {
    for (let round = 0; round < 10; round += 1) {
      const queue = await jobs.queue();
      await jobs.enqueue(queue);
      const [job] = await jobs.claim(queue);
      const jobId = job?.job_id ?? '';
      const [cancelled, completed] = await Promise.all([
        jobs.act(jobId, 'cancel'),
        jobs.report(jobId, 'complete', { epoch: job?.epoch }),
      ]);
      assert.deepEqual(sortedStatuses([cancelled, completed]), [200, 409]);
      const { status } = await jobs.row(jobId);
      assert.equal(status, cancelled.status === 200 ? 'dead_letter' : 'completed');
    }
  });
});

test('hostile input never causes more than a client error', async () => {
  const headers = { 'content-type': 'application/json' };
  for (const action of ['requeue', 'discard', 'cancel']) {
    for (const segment of hostileSegments) {
      const path = `${root}/${segment}/${action}`;
      const answer = await jobs.api.raw({ method: 'POST', path, headers, body: '{}' });
      assert.ok(answer.status >= 400 && answer.status < 500, `${path.slice(0, 60)}: ${answer.text}`);
    }
    const jobId = await jobs.dead(await jobs.queue());
    for (const { name, body } of hostileBodies) {
      const path = `${root}/${jobId}/${action}`;
      const answer = await jobs.api.raw({ method: 'POST', path, headers, body });
      assert.ok(answer.status >= 400 && answer.status < 500, `${name}: ${answer.text}`);
    }
    assert.deepEqual(await actionsOf(jobId), []);
  }
});
