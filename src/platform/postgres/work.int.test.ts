import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { sql } from './sql.ts';
import { claim, reap, renew, settle, type ClaimOptions, type Worker, type WorkTable } from './work.ts';

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
  await settle(worker.db, table, { ...done, keys: first.rows.map(({ id }) => id), epoch: first.lease.epoch });
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
  assert.deepEqual(await settle(worker.db, table, { ...done, keys, epoch: lost.lease.epoch }), []);
  assert.equal((await settle(rescuer.db, table, { ...done, keys, epoch: rescued.lease.epoch })).length, 10);
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
  const release = { ...done, set: sql`status = 'due'`, keys, epoch: again.lease.epoch };
  await settle(worker.db, table, { ...release, keepsLeaseLost: true });
  assert.equal(await marks(), 10n);
  const last = await claim<{ id: number }>(worker, table, due);
  await settle(worker.db, table, { ...done, keys, epoch: last.lease.epoch });
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
