import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { sql } from '../postgres/sql.ts';
import { createReplica, type Replica } from './replicas.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const create = (replicaId: string, roles: readonly string[]): Replica =>
  createReplica(database.db, {
    replicaId,
    roles,
    version: '1',
    onError: (error) => assert.fail(String(error)),
  });

test('a heartbeat counts the processes with the role workers whose heartbeat is fresh', async (t) => {
  const replicas = [create('one', ['api', 'workers']), create('two', ['workers']), create('three', ['api'])];
  const late = create('late', ['workers']);
  t.after(() => Promise.all([...replicas, late].map((replica) => replica.stop(AbortSignal.timeout(1000)))));
  assert.equal(late.workers(), 1, 'before the first heartbeat');
  for (const replica of replicas) await replica.start();
  await eventually(async () => {
    const rows = await database.db.query(sql`SELECT 1 FROM platform.replicas`);
    assert.equal(rows.length, 3);
  });
  await database.db.query(sql`
    INSERT INTO platform.replicas (replica_id, roles, version, seen_at)
    VALUES ('crashed', '{workers}', '1', now() - interval '16 seconds')`);
  await late.start();
  await eventually(async () => assert.equal(late.workers(), 2));
});
