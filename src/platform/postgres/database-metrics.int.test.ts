import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createDatabaseRole } from '../../../tests/support/database-role.ts';
import { connectTo, createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { createCredentialWatch, exportPool } from './database-metrics.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

test('the end of a password is exported as long as it has one', async (t) => {
  const role = await createDatabaseRole(database.url);
  await role.asOwner(`ALTER USER ROLE VALID UNTIL '2100-01-01 00:00:00+00'`);
  const db = connectTo(role.url);
  t.after(async () => {
    await db.end();
    await role.drop();
  });
  const metrics = createMetrics();
  const beats: number[] = [];
  const watch = createCredentialWatch(db, {
    metrics,
    beat: () => void beats.push(1),
    onError: (error) => assert.fail(String(error)),
  });
  await watch.start();
  await eventually(async () =>
    assert.match(await metrics.render(), /^db_credential_expiry_timestamp_seconds 4102444800$/m),
  );
  await watch.stop(AbortSignal.timeout(1000));
  assert.equal(beats.length, 2);
});

test('the connections of the pool are counted when the metrics are read', async () => {
  const metrics = createMetrics();
  exportPool(metrics, { connections: () => ({ max: 10, total: 7, idle: 3, waiting: 2 }) });
  const text = await metrics.render();
  for (const line of [
    'db_pool_connections{state="idle"} 3',
    'db_pool_connections{state="busy"} 4',
    'db_pool_waiting 2',
    'db_pool_max_connections 10',
  ])
    assert.ok(text.includes(`\n${line}\n`), line);
});
