import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import type { Queryable } from '../postgres/database.ts';
import { unnestRows } from '../postgres/unnest-rows.ts';
import { sql, type Sql } from '../postgres/sql.ts';
import {
  claim,
  reap,
  release,
  renew,
  settle,
  type Claimed,
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

/** A settle as the slices write it. */
function settleAs(
  db: Queryable,
  status: 'done' | 'due',
  { rows, lease }: Claimed<{ id: number }>,
): Promise<readonly { id: number }[]> {
  return settle(
    db,
    { slice: 'test', count: rows.length },
    sql`
    WITH settled AS (
      UPDATE public.work t
      SET status = ${status}, lease_owner = NULL, lease_until = NULL, lease_lost = t.lease_lost AND ${status === 'due'}
      FROM ${unnestRows(sql`attempt`, rows, [
        [sql`key`, sql`int[]`, ({ id }) => id],
        [sql`epoch`, sql`bigint[]`, () => lease.epoch],
      ])}
      WHERE t.id = attempt.key AND t.lease_epoch = attempt.epoch AND (t.status = 'working') IS TRUE
      RETURNING t.id
    )
    SELECT id FROM settled`,
  );
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
  await settleAs(worker.db, 'done', first);
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
  assert.deepEqual(await settleAs(worker.db, 'done', lost), []);
  assert.equal((await settleAs(rescuer.db, 'done', rescued)).length, 10);
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
  await settleAs(worker.db, 'due', again);
  assert.equal(await marks(), 10n);
  const last = await claim<{ id: number }>(worker, table, due);
  await settleAs(worker.db, 'done', last);
  assert.equal(await marks(), 0n);
});

/** Renews the rows of a claim, and says which ones were renewed, locked or lost. */
async function renewAll(worker: Worker, { rows, lease }: Claimed<{ id: number }>) {
  const leased = rows.map(({ id }) => ({ id, lease }));
  const result = await renew(worker, table, leased, { keyOf: ({ id }) => id, leaseMs: 60_000 });
  const idsOf = (items: readonly { id: number }[]): readonly number[] =>
    items.map(({ id }) => id).toSorted((a, b) => a - b);
  return { renewed: idsOf(result.renewed), locked: idsOf(result.locked), lost: idsOf(result.lost) };
}

test('renewing extends leases that are still ours and tells which ones are not', async () => {
  const worker = createTestWorker(database.db);
  const held = await claim<{ id: number }>(worker, table, { ...due, leaseMs: 1000 });
  await database.db.query(
    sql`UPDATE public.work SET lease_epoch = nextval('platform.lease_epochs') WHERE id <= 3`,
  );
  assert.deepEqual(await renewAll(worker, held), {
    renewed: [4, 5, 6, 7, 8, 9, 10],
    locked: [],
    lost: [1, 2, 3],
  });
});

test('renewing does not wait for a locked row, which stays ours, and renews the others', async () => {
  const worker = createTestWorker(database.db);
  const held = await claim<{ id: number }>(worker, table, { ...due, limit: 3, leaseMs: 1000 });
  await database.db.transaction(async (tx) => {
    await tx.query(sql`SELECT id FROM public.work WHERE id = 2 FOR UPDATE`);
    assert.deepEqual(await renewAll(worker, held), { renewed: [1, 3], locked: [2], lost: [] });
    const ends = await database.db.query<{ is_renewed: boolean }>(sql`
      SELECT lease_until > now() + interval '30 seconds' AS is_renewed FROM public.work WHERE id <= 3 ORDER BY id`);
    assert.deepEqual(
      ends.map(({ is_renewed }) => is_renewed),
      [true, false, true],
    );
    await tx.query(sql`UPDATE public.work SET lease_epoch = nextval('platform.lease_epochs') WHERE id = 2`);
  });
  assert.deepEqual(await renewAll(worker, held), { renewed: [1, 3], locked: [], lost: [2] });
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
    const claimed = await claim<{ id: number }>(worker, table, options);
    assert.equal((await settleAs(worker.db, 'done', claimed)).length, 1000);
  }
  assert.equal(plans.length, 4);
  for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan on work/);
});

test('a released row can be claimed at once, and only its lease holder can release it', async () => {
  const worker = createTestWorker(database.db);
  const claimed = await claim<{ id: number }>(worker, table, due);
  const keys = claimed.rows.map(({ id }) => id);
  const leased = async (): Promise<number> =>
    (await database.db.query(sql`SELECT 1 FROM public.work WHERE lease_owner IS NOT NULL`)).length;
  await release(worker.db, table, { keys, epoch: claimed.lease.epoch - 1n });
  assert.equal(await leased(), 10);
  await release(worker.db, table, { keys, epoch: claimed.lease.epoch });
  assert.equal(await leased(), 0);
});
