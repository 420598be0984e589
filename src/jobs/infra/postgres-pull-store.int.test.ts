import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { PulledEnd } from '../usecase/acting-ports.ts';
import { finishPulledJob } from '../usecase/finish-pulled-job.ts';
import { createPostgresJobStore } from './postgres-job-store.ts';
import { createPostgresPullStore } from './postgres-pull-store.ts';
import { createPostgresQueueBook } from './postgres-queue-book.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

/** The first settle meets with this. */
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

/** Says how a pulled job ended; how it stood each time that an end was told. */
async function tell(trouble: Trouble, queue: string, end: PulledEnd): Promise<readonly unknown[]> {
  const db = troubled(trouble);
  const worker = createTestWorker(db);
  const book = createPostgresQueueBook(db);
  await book.refresh();
  const store = createPostgresPullStore({
    db,
    worker,
    book,
    jobStoreFor: (on, as) => createPostgresJobStore(on, as, { book, onSettleRetry: () => {} }),
  });
  await db.query(sql`SELECT jobs.enqueue(${queue}, '{}', p_max_retries => 1)`);
  const { jobs } = await store.claim({
    queue,
    owner: 'pull:w1',
    limit: 1,
    leaseMs: 60_000,
    looksForAlone: false,
  });
  const [held] = jobs;
  assert.ok(held !== undefined);
  const told: unknown[] = [];
  const status = await finishPulledJob(
    { store, onEnd: (_queue, _end, to) => told.push(to), onStale: (count) => worker.onStale('jobs', count) },
    held,
    end,
  );
  assert.deepEqual([status, worker.stale.count], [told[0], 0]);
  return told;
}

for (const trouble of ['its answer is lost', 'a deadlock'] as const)
  test(`an end of a pulled job is told once where its settle meets with trouble: ${trouble}`, async () => {
    const died = { end: 'failed', error: 'it broke', isRetryable: true, retryAfterMs: null } as const;
    assert.deepEqual(await tell(trouble, 'kept', died), ['dead_letter']);
    const [row] = await database.db.query<{ error: string; worker: string }>(sql`
      SELECT a.error, a.worker FROM jobs.job_attempts a JOIN jobs.job_queue j USING (job_id)
      WHERE j.queue = 'kept' ORDER BY a.id DESC LIMIT 1`);
    assert.deepEqual(row, { error: 'it broke', worker: 'pull:w1' });
    await database.db.query(sql`
      INSERT INTO jobs.queues (queue, keep_completed) VALUES ('gone', false) ON CONFLICT DO NOTHING`);
    assert.deepEqual(await tell(trouble, 'gone', { end: 'completed', result: null }), ['completed']);
  });
