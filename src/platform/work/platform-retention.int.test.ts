import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { sql } from '../postgres/sql.ts';
import { platformRetention } from './platform-retention.ts';
import { runTasks } from './retention-tasks.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

test('idle workers are deleted a day after they were last idle', async () => {
  await database.db.query(sql`
    INSERT INTO platform.idle_workers (channel, worker, idle_until)
    VALUES ('jobs:a', 'gone', now() - interval '2 days'), ('jobs:a', 'here', now())`);
  const counts = await runTasks(platformRetention(database.db), new AbortController().signal);
  assert.deepEqual(counts, { events: 0, groups: 0, idleWorkers: 1 });
  const rows = await database.db.query(sql`SELECT worker FROM platform.idle_workers`);
  assert.deepEqual(rows, [{ worker: 'here' }]);
});
