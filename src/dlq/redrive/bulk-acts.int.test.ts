import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { messagesOfLastHour, noteBulkAct } from './bulk-acts.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

/** Asks, waits until it is told to, and notes what it does. */
function act(person: string, messages: number) {
  const goOn = Promise.withResolvers<void>();
  const counted = Promise.withResolvers<number>();
  const done = database.db.transaction(async (tx) => {
    counted.resolve(await messagesOfLastHour(tx, person));
    await goOn.promise;
    await noteBulkAct(tx, person, messages);
  });
  done.catch(counted.reject);
  return { counted: counted.promise, finish: goOn.resolve, done };
}

async function waitingForLocks(): Promise<number> {
  const rows = await database.db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`);
  return rows[0]?.count ?? 0;
}

test('of two acts of a person the second one waits for the first, and counts it', async () => {
  const first = act('ann', 3);
  assert.equal(await first.counted, 0);
  const second = act('ann', 3);
  await eventually(async () => assert.equal(await waitingForLocks(), 1));
  first.finish();
  await first.done;
  assert.equal(await second.counted, 3);
  second.finish();
  await second.done;
});

test('acts of two people do not wait for each other', async () => {
  const [one, other] = [act('bob', 2), act('sue', 2)];
  assert.deepEqual([await one.counted, await other.counted], [0, 0]);
  one.finish();
  other.finish();
  await Promise.all([one.done, other.done]);
});

test('what is older than an hour does not count, and is deleted by the next act', async () => {
  const first = act('tom', 5);
  first.finish();
  await first.done;
  await database.db.query(sql`UPDATE dlq.bulk_acts SET at = at - interval '61 minutes' WHERE person = 'tom'`);
  const second = act('tom', 1);
  assert.equal(await second.counted, 0);
  second.finish();
  await second.done;
  const rows = await database.db.query(sql`SELECT messages FROM dlq.bulk_acts WHERE person = 'tom'`);
  assert.deepEqual(rows, [{ messages: 1 }]);
});
