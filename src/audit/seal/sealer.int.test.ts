import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { testAct } from '../../../tests/support/acts.ts';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createLogger } from '../../platform/telemetry/logger.ts';
import { createMetrics } from '../../platform/telemetry/metrics.ts';
import { createSealer } from './sealer.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const record = (tx: Queryable): Promise<void> =>
  recordAct(tx, testAct('jobs:jobs:cancel'), { resource: 'jobs/jobs/1' });

async function countSealed(): Promise<number> {
  const [row] = await database.db.query<{ events: bigint }>(sql`
    SELECT COALESCE(sum(events), 0)::bigint AS events FROM audit.seals`);
  return Number(row?.events);
}

test('a sealer with nothing to seal only reads the last number, and seals what is written later', async (t) => {
  const { db } = database;
  let texts: string[] = [];
  const watched: Database = {
    ...db,
    query(statement) {
      texts.push(statement.text);
      return db.query(statement);
    },
  };
  const logger = createLogger({ service: 'test', version: '1', environment: 'test', level: 'silent' });
  const worker = createTestWorker(db);
  const sealer = createSealer(
    { db: watched, worker, metrics: createMetrics(), logger, addAnchors: null, writeLines: () => {} },
    10,
  );
  await record(db);
  await sealer.start();
  t.after(() => sealer.stop(AbortSignal.timeout(5000)));
  await eventually(async () => assert.equal(await countSealed(), 1));
  await eventually(async () => {
    texts = [];
    await eventually(async () => assert.ok(texts.length >= 3));
    assert.ok(texts.every((text) => text.includes('audit.events_seq')));
  });
  // The number is taken before the commit: the sealer looks while the event is not there yet.
  await db.transaction(async (tx) => {
    await record(tx);
    texts = [];
    await eventually(async () => assert.ok(texts.length >= 3));
    assert.equal(await countSealed(), 1);
  });
  await eventually(async () => assert.equal(await countSealed(), 2));
});
