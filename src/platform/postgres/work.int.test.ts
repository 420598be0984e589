import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import type { Queryable } from './database.ts';
import { sql, type Sql } from './sql.ts';
import {
  claim,
  heldRows,
  reap,
  renew,
  settle,
  type ClaimOptions,
  type Worker,
  type WorkTable,
} from './work.ts';

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
  await database.db.query(sql`
    CREATE TABLE public.work (
      id INT PRIMARY KEY, status TEXT NOT NULL DEFAULT 'due', lease_owner TEXT, lease_until TIMESTAMPTZ,
      lease_epoch BIGINT NOT NULL DEFAULT 0, lease_lost BOOLEAN NOT NULL DEFAULT false)`);
});
after(() => database.drop());
beforeEach(async () => {
  await database.db.query(sql`TRUNCATE public.work`);
  await database.db.query(sql`INSERT INTO public.work (id) SELECT generate_series(1, 100)`);
});

const table: WorkTable = { slice: 'test', table: sql`public.work`, key: sql`id`, keyArray: sql`int[]` };
const due: ClaimOptions = {
  where: sql`t.status = 'due'`,
  orderBy: sql`t.id`,
  limit: 10,
  leaseMs: 60_000,
  set: sql`status = 'working'`,
  returning: sql`t.id`,
};
const done = { guard: sql`t.status = 'working'`, set: sql`status = 'done'`, returning: sql`t.id` };

function held(keys: readonly number[], epoch: bigint) {
  return { held: heldRows(table, keys, epoch), count: keys.length };
}

async function expireLeases(): Promise<void> {
  await database.db.query(sql`UPDATE public.work SET lease_until = now() - interval '1 second'`);
}

test('workers that claim at once never get the same row', async () => {
  const workers = Array.from({ length: 8 }, (_, i) => createTestWorker(database.db, `worker-${i}`));
  const claims = await Promise.all(
    workers.flatMap((worker) => [
      claim<{ id: number }>(worker, table, due),
      claim<{ id: number }>(worker, table, due),
    ]),
  );
  const ids = claims.flatMap(({ rows }) => rows.map(({ id }) => id));
  assert.equal(new Set(ids).size, ids.length);
  assert.equal(ids.length, 100);
});

test('epochs grow with every claim and are never reset', async () => {
  const worker = createTestWorker(database.db);
  const first = await claim<{ id: number }>(worker, table, due);
  await settle(worker.db, table, {
    ...done,
    ...held(
      first.rows.map(({ id }) => id),
      first.lease.epoch,
    ),
  });
  await database.db.query(sql`UPDATE public.work SET status = 'due'`);
  const second = await claim(worker, table, { ...due, limit: 100 });
  assert.ok(second.lease.epoch > first.lease.epoch);
  const rows = await database.db.query<{ min: bigint }>(sql`SELECT min(lease_epoch) AS min FROM public.work`);
  assert.equal(rows[0]?.min, second.lease.epoch);
});

test('a worker that lost its rows to the reaper settles none of them', async () => {
  const worker = createTestWorker(database.db);
  const lost = await claim<{ id: number }>(worker, table, due);
  await expireLeases();
  const reaped = await reap<{ id: number }>(database.db, table, {
    where: sql`t.status = 'working'`,
    limit: 100,
    set: sql`status = 'due'`,
    returning: sql`t.id`,
  });
  assert.equal(reaped.length, 10);
  const rescuer = createTestWorker(database.db, 'rescuer');
  const rescued = await claim<{ id: number }>(rescuer, table, due);
  const keys = lost.rows.map(({ id }) => id);
  assert.deepEqual(await settle(worker.db, table, { ...done, ...held(keys, lost.lease.epoch) }), []);
  assert.equal((await settle(rescuer.db, table, { ...done, ...held(keys, rescued.lease.epoch) })).length, 10);
});

test('a reaped row is marked as lost until it is settled, and giving it back keeps the mark', async () => {
  const worker: Worker = createTestWorker(database.db);
  const marks = async (): Promise<bigint | undefined> => {
    const rows = await database.db.query<{ count: bigint }>(
      sql`SELECT count(*) AS count FROM public.work WHERE lease_lost`,
    );
    return rows[0]?.count;
  };
  await claim(worker, table, due);
  await expireLeases();
  await reap(database.db, table, {
    where: sql`t.status = 'working'`,
    limit: 100,
    set: sql`status = 'due'`,
    returning: sql`t.id`,
  });
  assert.equal(await marks(), 10n);
  const again = await claim<{ id: number }>(worker, table, due);
  const keys = again.rows.map(({ id }) => id);
  const release = { ...done, set: sql`status = 'due'`, ...held(keys, again.lease.epoch) };
  await settle(worker.db, table, { ...release, keepsLeaseLost: sql`true` });
  assert.equal(await marks(), 10n);
  const last = await claim<{ id: number }>(worker, table, due);
  await settle(worker.db, table, { ...done, ...held(keys, last.lease.epoch) });
  assert.equal(await marks(), 0n);
});

test('renewing prolongs what is still held and tells what is not', async () => {
  const worker = createTestWorker(database.db);
  const held = await claim<{ id: number }>(worker, table, { ...due, leaseMs: 1000 });
  await database.db.query(
    sql`UPDATE public.work SET lease_epoch = nextval('platform.lease_epochs') WHERE id <= 3`,
  );
  const renewed = await renew(worker, table, {
    keys: held.rows.map(({ id }) => id),
    epochs: held.rows.map(() => held.lease.epoch),
    leaseMs: 60_000,
  });
  assert.deepEqual(
    renewed.keys.toSorted((a, b) => a - b),
    [4, 5, 6, 7, 8, 9, 10],
  );
});

test('a row that somebody has locked is not waited for: it stays ours, and the others are renewed', async () => {
  const worker = createTestWorker(database.db);
  const held = await claim<{ id: number }>(worker, table, { ...due, limit: 3, leaseMs: 1000 });
  const keys = held.rows.map(({ id }) => id);
  const ask = () => renew(worker, table, { keys, epochs: keys.map(() => held.lease.epoch), leaseMs: 60_000 });
  await database.db.transaction(async (tx) => {
    await tx.query(sql`SELECT id FROM public.work WHERE id = 2 FOR UPDATE`);
    const renewed = await ask();
    assert.deepEqual([new Set(renewed.keys), renewed.locked], [new Set([1, 3]), [2]]);
    const ends = await database.db.query<{ is_renewed: boolean }>(sql`
      SELECT lease_until > now() + interval '30 seconds' AS is_renewed FROM public.work WHERE id <= 3 ORDER BY id`);
    assert.deepEqual(
      ends.map(({ is_renewed }) => is_renewed),
      [true, false, true],
    );
    await tx.query(sql`UPDATE public.work SET lease_epoch = nextval('platform.lease_epochs') WHERE id = 2`);
  });
  const after = await ask();
  assert.deepEqual([new Set(after.keys), after.locked], [new Set([1, 3]), []], 'it was taken away');
});

test('a live lease is not reaped', async () => {
  await claim(createTestWorker(database.db), table, due);
  const reaped = await reap(database.db, table, {
    where: sql`t.status = 'working'`,
    limit: 100,
    set: sql`status = 'due'`,
    returning: sql`t.id`,
  });
  assert.deepEqual(reaped, []);
});

/** Runs every statement, and keeps the plan that it has. */
function explaining(plans: string[]): Queryable {
  return {
    async query<Row>(statement: Sql) {
      const plan = await database.db.query<{ 'QUERY PLAN': string }>(sql`EXPLAIN ${statement}`);
      plans.push(plan.map((line) => line['QUERY PLAN']).join('\n'));
      return database.db.query<Row>(statement);
    },
  };
}

test('a claim and a settle look up their rows and never read the whole table, however small its rows', async () => {
  await database.db.query(sql`INSERT INTO public.work (id) SELECT generate_series(101, 20000)`);
  await database.db.query(sql`VACUUM ANALYZE public.work`);
  const plans: string[] = [];
  const worker: Worker = { ...createTestWorker(database.db), db: explaining(plans) };
  for (const was of [undefined, sql`, t.status AS was_status`]) {
    const options = {
      ...due,
      limit: 1000,
      ...(was === undefined ? {} : { was, returning: sql`t.id, was_status` }),
    };
    const { lease, rows } = await claim<{ id: number }>(worker, table, options);
    const keys = rows.map(({ id }) => id);
    assert.equal((await settle(worker.db, table, { ...done, ...held(keys, lease.epoch) })).length, 1000);
  }
  assert.equal(plans.length, 4);
  for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan on work/);
});
