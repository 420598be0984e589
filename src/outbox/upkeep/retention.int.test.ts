import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { Sql, sql } from '../../platform/postgres/sql.ts';
import { runTasks, type Counts } from '../../platform/work/retention-tasks.ts';
import { createOrderRetention, orderRetention } from './retention.ts';

const hourMs = 3_600_000;
const ledgerTtlMs = 48 * hourMs;
const auditRetentionMs = 400 * 24 * hourMs;

let database: TestDatabase;
let db: Database;
before(async () => {
  database = await createTestDatabase();
  ({ db } = database);
});
after(() => database.drop());
beforeEach(() =>
  db.query(sql`
    TRUNCATE outbox.outbox_orders, outbox.idempo_ledger, outbox.outbox_orders_archive, outbox.idempo_ledger_archive`),
);

function purge(
  options: Readonly<{ batchSize?: number; through?: Database; signal?: AbortSignal }> = {},
): Promise<Counts> {
  const { batchSize = 1000, through = db, signal = new AbortController().signal } = options;
  return runTasks(orderRetention(through, { ledgerTtlMs, auditRetentionMs, batchSize }), signal);
}

type Posted = Readonly<{ id: bigint | null; outcome: string }>;

async function post(key: string): Promise<Posted> {
  const [row] = await db.query<Posted>(sql`
    SELECT id, outcome FROM outbox.insert_order(
      ${key}, 'broker', '{"qty": 1}'::jsonb, 'sha256:1', NULL, NULL, NULL, 'test')`);
  assert.ok(row);
  return row;
}

/** Ends the orders and makes them expire. */
async function expire(keys: readonly string[], end: Sql = sql`status = 'sent'`): Promise<void> {
  await db.query(sql`
    UPDATE outbox.outbox_orders SET ${end} WHERE idempotency_key = ANY(${keys}::text[])`);
  await db.query(sql`
    UPDATE outbox.idempo_ledger SET status = 'succeeded', expires_at = now() - interval '1 second'
    WHERE idempotency_key = ANY(${keys}::text[])`);
}

async function postExpired(count: number, end?: Sql): Promise<readonly string[]> {
  const keys = Array.from({ length: count }, (_, i) => `key-${String(i).padStart(5, '0')}`);
  await Promise.all(keys.map(post));
  await expire(keys, end);
  return keys;
}

async function countIn(table: Sql): Promise<number> {
  const [row] = await db.query<{ count: number }>(sql`SELECT count(*)::int AS count FROM ${table}`);
  return row?.count ?? 0;
}

async function counts(): Promise<readonly number[]> {
  return Promise.all(
    [
      sql`outbox.outbox_orders`,
      sql`outbox.idempo_ledger`,
      sql`outbox.outbox_orders_archive`,
      sql`outbox.idempo_ledger_archive`,
    ].map(countIn),
  );
}

async function rowsOf(table: Sql): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const rows = await db.query<{ row: Record<string, unknown> }>(
    sql`SELECT to_jsonb(t) AS row FROM ${table} t`,
  );
  return rows.map(({ row }) => row);
}

/** Its transactions commit only when `opened` resolves; `reached` does when the first one is ready to. */
function holdCommits(): Readonly<{ through: Database; reached: Promise<void>; open: () => void }> {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const through: Database = {
    ...db,
    transaction: (work) =>
      db.transaction(async (tx) => {
        const value = await work(tx);
        reached.resolve();
        await opened.promise;
        return value;
      }),
  };
  return { through, reached: reached.promise, open: () => opened.resolve() };
}

test('an order is archived with its ledger row when it has expired, and not before', async () => {
  await postExpired(3);
  await post('still-kept');
  await db.query(sql`UPDATE outbox.outbox_orders SET status = 'sent' WHERE idempotency_key = 'still-kept'`);
  await db.query(sql`
    UPDATE outbox.idempo_ledger SET expires_at = now() + interval '1 hour' WHERE idempotency_key = 'still-kept'`);
  assert.deepEqual(await purge(), { archived: 3, deleted: 0, purged: 0 });
  assert.deepEqual(await counts(), [1, 1, 3, 3]);
  assert.deepEqual(await purge(), { archived: 0, deleted: 0, purged: 0 });
});

test('archived rows keep every column', async () => {
  await post('a-full-row');
  await db.query(sql`
    UPDATE outbox.outbox_orders
    SET status = 'dead', retry_count = 8, last_error = 'UNKNOWN: x', ordering_key = 'k', ordering_seq = 7,
        trace_id = 't', traceparent = '00-1', first_sent_at = now(), in_doubt = true, response = '{"status": 504}',
        resolution = 'skipped', supersedes_id = 3, lease_owner = 'w', lease_until = now(), lease_epoch = 9,
        lease_lost = true, fingerprint = 'v2:x', created_by = 'key:a'`);
  await db.query(sql`
    UPDATE outbox.idempo_ledger SET result_digest = 'sha256:2', outside_id = 'brk-1', expires_at = now()`);
  const [order, entry] = [await rowsOf(sql`outbox.outbox_orders`), await rowsOf(sql`outbox.idempo_ledger`)];
  for (const row of [...order, ...entry])
    for (const [column, value] of Object.entries(row)) assert.notEqual(value, null, `${column} has no value`);
  await purge();
  for (const [kept, table] of [
    [order, sql`outbox.outbox_orders_archive`],
    [entry, sql`outbox.idempo_ledger_archive`],
  ] as const) {
    const [{ archived_at: archivedAt, ...row } = {}] = await rowsOf(table);
    assert.deepEqual([row], kept);
    assert.ok(archivedAt);
  }
});

test('an order that is neither sent nor resolved stays, and does not block the ones behind it', async () => {
  for (const status of ['queued', 'sending', 'failed', 'dead']) {
    await post(`stays-${status}`);
    await expire([`stays-${status}`], sql`status = ${status}`);
  }
  await db.query(sql`UPDATE outbox.idempo_ledger SET expires_at = '-infinity'`);
  await postExpired(3, sql`status = 'dead', resolution = 'cancelled'`);
  assert.equal((await purge({ batchSize: 2 })).archived, 3);
  assert.deepEqual(await counts(), [4, 4, 3, 3]);
});

test('a key is taken until its order is archived, and then it is free', async () => {
  await postExpired(1);
  assert.equal((await post('key-00000')).outcome, 'replayed');
  await purge();
  assert.equal((await post('key-00000')).outcome, 'created');
});

test('a key that was used twice has two rows in the archive', async () => {
  const first = await post('used-twice');
  await expire(['used-twice']);
  await purge();
  const second = await post('used-twice');
  await expire(['used-twice']);
  await purge();
  const proofs = await db.query<{ order_id: bigint }>(sql`
    SELECT o.id AS order_id FROM outbox.idempo_ledger_archive l
    JOIN outbox.outbox_orders_archive o ON o.id = l.outbox_id AND o.idempotency_key = l.idempotency_key
    WHERE l.idempotency_key = 'used-twice' ORDER BY o.id`);
  assert.deepEqual(
    proofs.map((row) => row.order_id),
    [first.id, second.id],
  );
});

test('an order that is posted while its key is being archived waits, and is created', async () => {
  await postExpired(1);
  const { through, reached, open } = holdCommits();
  const purging = purge({ through });
  await reached;
  const posting = post('key-00000');
  await eventually(
    async () => {
      assert.equal(
        await countIn(sql`pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`),
        1,
      );
    },
    { everyMs: 5 },
  );
  open();
  assert.equal((await posting).outcome, 'created');
  assert.equal((await purging).archived, 1);
  assert.deepEqual(await counts(), [1, 1, 1, 1]);
});

test('an order whose key is archived between its two reads of the ledger is created', async () => {
  await postExpired(1);
  // Holds an order up after it has met its key, for as long as the gate is there.
  await db.query(sql`
    CREATE TABLE public.gate (id INT);
    INSERT INTO public.gate VALUES (1);
    CREATE FUNCTION public.wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      WHILE EXISTS (SELECT 1 FROM public.gate) LOOP PERFORM pg_sleep(0.01); END LOOP;
      RETURN NULL;
    END $$;
    CREATE TRIGGER wait_at_gate AFTER INSERT ON outbox.idempo_ledger
      FOR EACH STATEMENT EXECUTE FUNCTION public.wait_at_gate()`);
  const posting = post('key-00000');
  await eventually(async () => {
    assert.equal(
      await countIn(sql`pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()`),
      1,
    );
  });
  assert.equal((await purge()).archived, 1);
  await db.query(sql`DELETE FROM public.gate`);
  assert.equal((await posting).outcome, 'created');
  await db.query(sql`DROP TRIGGER wait_at_gate ON outbox.idempo_ledger`);
  assert.deepEqual(await counts(), [1, 1, 1, 1]);
});

test('a batch that does not commit has changed nothing', async () => {
  await postExpired(5);
  const [orders, entries] = [
    await rowsOf(sql`outbox.outbox_orders`),
    await rowsOf(sql`outbox.idempo_ledger`),
  ];
  const through: Database = {
    ...db,
    transaction: (work) =>
      db.transaction(async (tx) => {
        await work(tx);
        throw new Error('the process dies here');
      }),
  };
  await assert.rejects(purge({ through }), /dies here/);
  assert.deepEqual(await rowsOf(sql`outbox.outbox_orders`), orders);
  assert.deepEqual(await rowsOf(sql`outbox.idempo_ledger`), entries);
  assert.deepEqual(await counts(), [5, 5, 0, 0]);
});

test('locked ledger rows and orders are skipped, and archived in the next round', async () => {
  await postExpired(4);
  await db.transaction(async (tx) => {
    await tx.query(sql`SELECT 1 FROM outbox.idempo_ledger WHERE idempotency_key = 'key-00000' FOR UPDATE`);
    await tx.query(sql`SELECT 1 FROM outbox.outbox_orders WHERE idempotency_key = 'key-00001' FOR UPDATE`);
    assert.equal((await purge()).archived, 2);
  });
  assert.deepEqual(await counts(), [2, 2, 2, 2]);
  assert.equal((await purge()).archived, 2);
});

test('concurrent rounds archive each row once', async () => {
  await postExpired(300);
  const purged = await Promise.all(Array.from({ length: 4 }, () => purge({ batchSize: 7 })));
  const rest = await purge();
  assert.equal(
    [...purged, rest].reduce((sum, { archived = 0 }) => sum + archived, 0),
    300,
  );
  assert.deepEqual(await counts(), [0, 0, 300, 300]);
});

test('posting keys that are being archived creates or replays, and loses nothing', async () => {
  const keys = await postExpired(60);
  const created = new Map(keys.map((key) => [key, 1]));
  const outcomes = new Set<string>();
  const stopping = new AbortController();
  const purging = Array.from({ length: 2 }, async () => {
    while (!stopping.signal.aborted) await purge({ batchSize: 10 });
  });
  const posting = Array.from({ length: 4 }, async (_, poster) => {
    for (let round = 0; round < 10; round += 1)
      for (let i = 0; i < keys.length; i += 1) {
        const key = keys[(i * 7 + poster * 13) % keys.length] ?? '';
        const { outcome } = await post(key);
        outcomes.add(outcome);
        if (outcome !== 'created') continue;
        created.set(key, (created.get(key) ?? 0) + 1);
        await expire([key]);
      }
  });
  await Promise.all(posting);
  stopping.abort();
  await Promise.all(purging);
  assert.deepEqual([...outcomes].toSorted(), ['created', 'replayed']);
  const stored = await db.query<{ key: string; orders: number; entries: number }>(sql`
    SELECT o.idempotency_key AS key, count(*)::int AS orders, count(l.outbox_id)::int AS entries
    FROM (SELECT id, idempotency_key FROM outbox.outbox_orders
          UNION ALL SELECT id, idempotency_key FROM outbox.outbox_orders_archive) o
    LEFT JOIN (SELECT outbox_id, idempotency_key FROM outbox.idempo_ledger
               UNION ALL SELECT outbox_id, idempotency_key FROM outbox.idempo_ledger_archive) l
      ON l.outbox_id = o.id AND l.idempotency_key = o.idempotency_key
    GROUP BY o.idempotency_key`);
  assert.deepEqual(
    new Map(stored.map(({ key, orders, entries }) => [key, [orders, entries]])),
    new Map([...created].map(([key, count]) => [key, [count, count]])),
  );
});

test('a round that is stopped ends after its batch', async () => {
  await postExpired(10);
  const stopping = new AbortController();
  const through: Database = {
    ...db,
    async transaction(work) {
      const value = await db.transaction(work);
      stopping.abort();
      return value;
    },
  };
  assert.equal((await purge({ through, batchSize: 4, signal: stopping.signal })).archived, 4);
  assert.deepEqual(await counts(), [6, 6, 4, 4]);
});

test('internal orders are deleted after the ledger TTL, once sent', async () => {
  const add = (key: string, status: string, hours: number) =>
    db.query(sql`
      INSERT INTO outbox.outbox_orders
        (idempotency_key, request_json, request_digest, status, next_attempt_at, updated_at, destination)
      VALUES (${key}, '{}', 'sha256:1', ${status}, now(), now() - ${hours} * interval '1 hour', split_part(${key}, ':', 1))`);
  await add('_saga_events:old-1', 'sent', 49);
  await add('_notify_ops:old-2', 'sent', 49);
  await add('_notify_ops:young', 'sent', 47);
  await add('_notify_ops:dead', 'dead', 490);
  await add('_notify_ops:failed', 'failed', 490);
  await add('broker:old', 'sent', 490);
  await post('_notify_ops:posted');
  await db.query(sql`
    UPDATE outbox.outbox_orders SET destination = '_notify_ops', status = 'sent', updated_at = now() - interval '490 hours'
    WHERE idempotency_key = '_notify_ops:posted'`);
  assert.deepEqual(await purge({ batchSize: 1 }), { archived: 0, deleted: 2, purged: 0 });
  const kept = await db.query<{ key: string }>(
    sql`SELECT idempotency_key AS key FROM outbox.outbox_orders ORDER BY idempotency_key COLLATE "C"`,
  );
  assert.deepEqual(
    kept.map(({ key }) => key),
    ['_notify_ops:dead', '_notify_ops:failed', '_notify_ops:posted', '_notify_ops:young', 'broker:old'],
  );
});

test('archived orders are purged with their ledger rows after the audit retention', async () => {
  await postExpired(7);
  await purge();
  const age = (keys: Sql) =>
    sql`SET archived_at = now() - interval '401 days' WHERE idempotency_key < ${keys}`;
  await db.query(sql`UPDATE outbox.outbox_orders_archive ${age(sql`'key-00005'`)}`);
  await db.query(sql`UPDATE outbox.idempo_ledger_archive ${age(sql`'key-00005'`)}`);
  assert.deepEqual(await purge({ batchSize: 2 }), { archived: 0, deleted: 0, purged: 5 });
  assert.deepEqual(await counts(), [0, 0, 2, 2]);
});

test('the service archives orders and maintains the audit as soon as it has its lease', async () => {
  await postExpired(1);
  const [last] = await db.query<{ name: string }>(sql`
    SELECT inhrelid::regclass::text AS name FROM pg_inherits
    WHERE inhparent = 'outbox.outbox_audit'::regclass AND inhrelid::regclass::text ~ '[0-9]$'
    ORDER BY 1 DESC LIMIT 1`);
  assert.ok(last);
  await db.query(new Sql([`DROP TABLE ${last.name}`], []));
  const options = { ledgerTtlMs, auditRetentionMs };
  const log = { info: () => {}, warn: () => {}, debug: () => {} };
  const service = createOrderRetention(createTestWorker(db), { db, log, options });
  await service.start();
  await eventually(async () => {
    assert.deepEqual(await counts(), [0, 0, 1, 1]);
    const [row] = await db.query(sql`SELECT to_regclass(${last.name}) IS NOT NULL AS is_made`);
    assert.deepEqual(row, { is_made: true });
  });
  await service.stop(AbortSignal.timeout(5000));
});
