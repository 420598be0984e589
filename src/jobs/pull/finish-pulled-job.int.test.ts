import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestJobStore } from '../../../tests/support/job-store.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createQueues } from '../queues.ts';
import { claimPulled, type PullDeps } from './claim-pulled.ts';
import { finishPulledJob, type PulledOutcome } from './finish-pulled-job.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

/** How the first settle fails. */
type Trouble = 'its answer is lost' | 'a deadlock';

function troubled(trouble: Trouble): Database {
  let isOver = false;
  return {
    ...database.db,
    async query(statement) {
      const isSettle = statement.text.includes('settled AS');
      if (!isSettle || isOver) return database.db.query(statement);
      isOver = true;
      if (trouble === 'a deadlock') throw Object.assign(new Error('deadlock detected'), { code: '40P01' });
      await database.db.query(statement);
      throw new Error('Connection terminated unexpectedly');
    },
  };
}

/** Reports the outcome of a pulled job; returns the status of each counted settlement. */
async function report(trouble: Trouble, queue: string, outcome: PulledOutcome): Promise<readonly unknown[]> {
  const db = troubled(trouble);
  const worker = createTestWorker(db);
  const queues = createQueues(db);
  await queues.refresh();
  const counted: unknown[] = [];
  const deps: PullDeps = {
    ...createTestJobStore(db, { worker, queues }).work,
    counts: { claimed: () => {}, settled: (_queue, _settlement, status) => void counted.push(status) },
  };
  await db.query(sql`SELECT jobs.enqueue(${queue}, '{}', p_max_retries => 1)`);
  const { jobs } = await claimPulled(deps, {
    queue,
    owner: 'pull:w1',
    claimedBy: null,
    limit: 1,
    leaseMs: 60_000,
    looksForSolo: false,
  });
  const [claimed] = jobs;
  assert.ok(claimed !== undefined);
  assert.deepEqual(counted, []);
  const status = await finishPulledJob(deps, claimed, outcome);
  assert.deepEqual([status, worker.stale.count], [counted[0], 0]);
  return counted;
}

for (const trouble of ['its answer is lost', 'a deadlock'] as const)
  test(`the outcome of a pulled job is counted once if its settle fails at first: ${trouble}`, async () => {
    const died = { outcome: 'failed', error: 'it broke', isRetryable: true, retryAfterMs: null } as const;
    assert.deepEqual(await report(trouble, 'kept', died), ['dead_letter']);
    const [row] = await database.db.query<{ error: string; worker: string }>(sql`
      SELECT a.error, a.worker FROM jobs.job_attempts a JOIN jobs.job_queue j USING (job_id)
      WHERE j.queue = 'kept' ORDER BY a.id DESC LIMIT 1`);
    assert.deepEqual(row, { error: 'it broke', worker: 'pull:w1' });
    await database.db.query(sql`
      INSERT INTO jobs.queues (queue, keep_completed) VALUES ('gone', false) ON CONFLICT DO NOTHING`);
    assert.deepEqual(await report(trouble, 'gone', { outcome: 'completed', result: null }), ['completed']);
  });
