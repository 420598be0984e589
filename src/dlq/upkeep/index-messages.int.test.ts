import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createLogger } from '../../platform/telemetry/logger.ts';
import { createWake, type Wake } from '../../platform/work/wake.ts';
import { createMessageIndexer } from './index-messages.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const log = createLogger({ service: 'test', version: '0', environment: 'test', level: 'error' });
/** Less than the shortest poll of an idle indexer. */
const atOnceMs = 3000;

async function startWake(t: TestContext): Promise<Wake> {
  const onError = (error: unknown): void => assert.fail(String(error));
  const wake = createWake(database.db, { listen: true, worker: 'tester', onError });
  await wake.start();
  t.after(() => wake.stop(AbortSignal.timeout(5000)));
  await eventually(async () => assert.ok(wake.isListening()));
  return wake;
}

async function untilAnnounced(): Promise<void> {
  await eventually(async () => {
    const rows = await database.db.query(sql`
      SELECT 1 FROM platform.idle_workers WHERE channel = 'dlq_index' AND idle_until > clock_timestamp()`);
    assert.equal(rows.length, 1);
  });
}

async function insertMessage(): Promise<string> {
  const [message] = await database.db.query<{ id: string }>(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, payload) VALUES ('orders', 'no answer', '{}')
    RETURNING id`);
  return message?.id ?? assert.fail('no row');
}

test('an idle indexer indexes a new message at once', async (t) => {
  const wake = await startWake(t);
  const indexer = createMessageIndexer(createTestWorker(database.db), wake, log);
  await indexer.start();
  t.after(() => indexer.stop(AbortSignal.timeout(5000)));
  await untilAnnounced();
  const id = await insertMessage();
  const beganMs = performance.now();
  await eventually(async () => {
    const rows = await database.db.query(sql`SELECT 1 FROM dlq.message_facets WHERE message_id = ${id}`);
    assert.equal(rows.length, 1);
  });
  const tookMs = performance.now() - beganMs;
  assert.ok(tookMs < atOnceMs, `${tookMs} ms`);
});

test('changes of what searches read are notified, and claims are not', async (t) => {
  const { db } = database;
  const id = await insertMessage();
  const wake = await startWake(t);
  const isNotified = async (change: () => Promise<unknown>, withinMs: number): Promise<boolean> => {
    const notified = wake.wait('dlq_index', withinMs, AbortSignal.timeout(10_000));
    await untilAnnounced();
    await change();
    return notified;
  };
  const fail = () => db.query(sql`UPDATE dlq.dlq_messages SET error_message = 'refused' WHERE id = ${id}`);
  const claim = () => db.query(sql`UPDATE dlq.dlq_messages SET status = 'RETRYING' WHERE id = ${id}`);
  assert.ok(await isNotified(fail, 10_000));
  assert.ok(!(await isNotified(claim, 500)));
});
