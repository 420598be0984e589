import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestJobStore } from '../../../tests/support/job-store.ts';
import { codeOf } from '../../kernel/errors.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { isQueueName } from '../domain/queue-settings.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const names = [
  'mail',
  'm',
  'a1_b.c-d',
  `a${'b'.repeat(99)}`,
  `a${'b'.repeat(100)}`,
  '',
  ' ',
  'Bad Name',
  'Mail',
  '1mail',
  '-mail',
  'mail ',
  'mail\n',
  'a/b',
  'a:b',
  'ä',
  'ſ',
  'ma\u0130l',
  'a\u200bb',
  'a"b',
  "a'; DROP TABLE jobs.job_queue; --",
];

const doors: readonly (readonly [door: string, add: (name: string) => Sql])[] = [
  ['jobs.enqueue', (name) => sql`SELECT job_id FROM jobs.enqueue(${name}, '{}')`],
  ['jobs.enqueue with a key', (name) => sql`SELECT job_id FROM jobs.enqueue(${name}, '{}', 'key')`],
  ['jobs.enqueue_many', (name) => sql`SELECT job_id FROM jobs.enqueue_many(${name}, '[{"payload": 1}]')`],
  [
    'INSERT',
    (name) => sql`INSERT INTO jobs.job_queue (queue, payload) VALUES (${name}, '{}') RETURNING job_id`,
  ],
];

for (const [door, add] of doors)
  test(`a queue has the same names by ${door} as over HTTP and in the client library`, async () => {
    for (const name of names) {
      const added = await database.db.query(add(name)).then(
        (rows) => rows.length === 1,
        (error: unknown) => {
          assert.equal(codeOf(error), '23514', name);
          assert.match(String(error), /queue_name/);
          return false;
        },
      );
      assert.equal(added, isQueueName(name), JSON.stringify(name));
    }
  });

test('a job of a queue whose name became invalid still runs', async () => {
  const { db } = database;
  const queue = 'Old Name';
  await db.transaction(async (tx) => {
    await tx.query(sql`ALTER DOMAIN jobs.queue_name DROP CONSTRAINT queue_name_is_plain`);
    await tx.query(sql`SELECT job_id FROM jobs.enqueue(${queue}, '{}', p_max_retries => 2)`);
    await tx.query(sql`
      ALTER DOMAIN jobs.queue_name
          ADD CONSTRAINT queue_name_is_plain CHECK (VALUE COLLATE "C" ~ '^[a-z][a-z0-9_.-]{0,99}$') NOT VALID`);
  });
  const store = createTestJobStore(db);
  for (const status of ['failed', 'dead_letter']) {
    await db.query(sql`UPDATE jobs.job_queue SET run_at = now(), sort_at = now() WHERE queue = ${queue}`);
    const { jobs } = await store.claim({ queue });
    const settled = await store.settle(
      queue,
      jobs.map((job) => ({
        job,
        ran: null,
        outcome: 'failed',
        error: 'no',
        isRetryable: true,
        retryAfterMs: null,
      })),
    );
    assert.deepEqual(
      settled.map((one) => one.status),
      [status],
    );
  }
});
