import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { defaultSettings } from '../domain/queue-settings.ts';
import {
  createPostgresQueueBook,
  writeConfiguredQueues,
  type ConfiguredQueue,
} from './postgres-queue-book.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const mail: ConfiguredQueue = {
  name: 'mail',
  maxRetries: 5,
  timeoutMs: 1000,
  backoff: { initialMs: 10, maxMs: 20, jitter: 0.5 },
  maxDeferrals: 7,
  keepCompleted: false,
  maxRunning: 3,
  rateLimit: { count: 10, windowMs: 60_000 },
};
const plain: ConfiguredQueue = { ...defaultSettings, name: 'plain' };

test('a queue that nobody has configured has the defaults, also those of the table', async () => {
  const book = createPostgresQueueBook(database.db);
  assert.deepEqual(book.settingsOf('unknown'), defaultSettings);
  await database.db.query(sql`INSERT INTO jobs.queues (queue) VALUES ('bare')`);
  await book.refresh();
  assert.deepEqual(book.settingsOf('bare'), defaultSettings);
  assert.equal(book.isLimited('bare'), false);
});

test('what is configured is in the book, and goes back to the defaults with its configuration', async () => {
  const book = createPostgresQueueBook(database.db);
  await writeConfiguredQueues(database.db, [mail, plain]);
  await database.db.query(sql`UPDATE jobs.queues SET paused = true WHERE queue = 'mail'`);
  await book.refresh();
  const { name, ...settings } = mail;
  assert.deepEqual(book.settingsOf(name), settings);
  assert.ok(book.isLimited('mail'));
  assert.equal(book.isLimited('plain'), false);

  await writeConfiguredQueues(database.db, [plain]);
  await book.refresh();
  assert.deepEqual(book.settingsOf('mail'), defaultSettings);
  assert.equal(book.isLimited('mail'), false);
  const [row] = await database.db.query<{ paused: boolean }>(
    sql`SELECT paused FROM jobs.queues WHERE queue = 'mail'`,
  );
  assert.equal(row?.paused, true, 'what a person said stays');
});

test('several processes that start at once write it down', async () => {
  await Promise.all([1, 2, 3, 4].map(() => writeConfiguredQueues(database.db, [plain, mail])));
  await writeConfiguredQueues(database.db, []);
});
