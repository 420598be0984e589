import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { testAct } from '../../../../tests/support/acts.ts';
import { createTestDatabase, type TestDatabase } from '../../../../tests/support/database.ts';
import { leaseRedrive } from '../../../../tests/support/redrive-runs.ts';
import { storeRecords } from '../../../../tests/support/stored-message.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { clearPayloads } from '../../domain/payloads.ts';
import { createRedrive, type NewRedrive } from './create-redrive.ts';
import { planRedrive, type PlanDeps } from './plan-redrive.ts';
import type { LeasedRedrive } from './redrives-table.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
afterEach(() =>
  database.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.message_history, dlq.redrives, dlq.redrive_items`),
);

const topic = 'orders.v1';
const leased = new AbortController().signal;

const depsOf = (db: Database, maxItems: number): PlanDeps => ({
  db,
  maxItems,
  broker: null,
  payloads: clearPayloads,
  approvalBound: null,
  republishKey: 'original',
  unwritable: async () => new Map(),
  routesOf: () => ({ unroutable: null, misnamed: null }),
  isDeadLetterTopic: (name) => name.endsWith('.dlq'),
  isAllowedTarget: () => true,
});

async function store(count: number, keys: number): Promise<void> {
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages
      (original_topic, error_message, source_topic, message_key, raw_value, fingerprint, created_at)
    SELECT ${topic}, 'failed', 'orders.dlq', convert_to('k' || n % ${keys}::int, 'UTF8'), '1', 'v2:' || n % 3,
           clock_timestamp() - interval '1 hour' + n * interval '1 ms'
    FROM generate_series(1, ${count}::int) AS n`);
}

type Excluded = readonly Readonly<{ reason: string; count: number; sample_ids: readonly string[] }>[];
type Row = Readonly<{ state: string; state_reason: string | null; counts: Record<string, unknown> | null }>;

async function rowOf({ id }: LeasedRedrive): Promise<Row | undefined> {
  const [row] = await database.db.query<Row>(sql`
    SELECT state, state_reason, counts FROM dlq.redrives WHERE id = ${id}`);
  return row;
}

const countItems = async (): Promise<number> =>
  (await database.db.query(sql`SELECT 1 FROM dlq.redrive_items`)).length;

const newRedrive: NewRedrive = {
  kind: 'retry',
  filter: {},
  options: { rate_per_second: null, order: 'key' },
  actor: 'alice',
  reason: 'fixed',
  act: testAct('dlq:redrives:plan', 'fixed'),
};

test('more messages than a redrive may have are refused, before and during the plan', async () => {
  const { db } = database;
  await storeRecords(
    db,
    topic,
    [1, 2, 3].map((i) => ({ key: `k${i}`, value: `${i}` })),
  );
  const makeId = (): string => crypto.randomUUID();
  await assert.rejects(createRedrive({ db, makeId, payloads: clearPayloads, maxItems: 2 }, newRedrive), {
    code: 'SYS_DLQ_TOO_MANY_MESSAGES',
    kind: 'semantic',
  });
  await createRedrive({ db, makeId, payloads: clearPayloads, maxItems: 3 }, newRedrive);
  // Only what can be selected counts.
  await db.query(sql`UPDATE dlq.dlq_messages SET status = 'DEAD' WHERE message_key = 'k1'`);
  await createRedrive({ db, makeId, payloads: clearPayloads, maxItems: 2 }, newRedrive);

  const planned = await leaseRedrive(db, { state: 'planning' });
  await planRedrive(depsOf(db, 1), planned, leased);
  const row = await rowOf(planned);
  assert.equal(row?.state, 'failed');
  assert.match(row.state_reason ?? '', /more than 1 messages; narrow it/);
  assert.equal(await countItems(), 0);
});

test('a plan is refused while a hundred others were not started', async () => {
  const { db } = database;
  const deps = { db, makeId: () => crypto.randomUUID(), payloads: clearPayloads, maxItems: 10 };
  await db.query(sql`
    INSERT INTO dlq.redrives (id, state, filter, options, actor, reason)
    SELECT gen_random_uuid(), CASE WHEN n % 2 = 0 THEN 'planned' ELSE 'planning' END, '{}', '{}', 'alice', 'fixed'
    FROM generate_series(1, 100) AS n`);
  const refused = { code: 'SYS_DLQ_TOO_MANY_PLANS', kind: 'semantic' };
  await assert.rejects(createRedrive(deps, newRedrive), refused);
  await db.query(sql`
    UPDATE dlq.redrives SET state = 'cancelled' WHERE id = (SELECT id FROM dlq.redrives LIMIT 1)`);
  await createRedrive(deps, newRedrive);
  await assert.rejects(createRedrive(deps, newRedrive), refused);
});

test('a planner that has lost its lease writes nothing more, and its successor starts over', async () => {
  await store(10_005, 100);
  const lost = await leaseRedrive(database.db, { state: 'planning' });
  const batches: number[] = [];
  const takeOver: Database = {
    ...database.db,
    transaction: (work, options) =>
      database.db
        .transaction(
          (tx) =>
            work({
              async query(statement) {
                const rows = await tx.query<never>(statement);
                if (statement.text.includes('INSERT INTO dlq.redrive_items')) batches.push(batches.length);
                return rows;
              },
            }),
          options,
        )
        .then(async (value) => {
          // After the first batch is stored, another process has the lease.
          if (batches.length === 1)
            await database.db.query(sql`
            UPDATE dlq.redrives SET lease_epoch = nextval('platform.lease_epochs') WHERE id = ${lost.id}`);
          return value;
        }),
  };
  await planRedrive(depsOf(takeOver, 1_000_000), lost, leased);
  assert.equal((await rowOf(lost))?.state, 'planning');
  assert.equal(await countItems(), 10_000);

  const [row] = await database.db.query<{ epoch: bigint }>(sql`
    SELECT lease_epoch AS epoch FROM dlq.redrives WHERE id = ${lost.id}`);
  const heir = { ...lost, lease: { ...lost.lease, epoch: row?.epoch ?? 0n } };
  await planRedrive(depsOf(database.db, 1_000_000), heir, leased);
  const planned = await rowOf(heir);
  assert.equal(planned?.state, 'planned');
  assert.equal(planned.counts?.['selected'], 10_005);
  const [figures] = await database.db.query(sql`
    SELECT count(*)::int AS items, count(DISTINCT message_id)::int AS messages, min(position) AS first,
           max(position) AS last
    FROM dlq.redrive_items`);
  assert.deepEqual(figures, { items: 10_005, messages: 10_005, first: 1, last: 10_005 });
});

test('a plan counts fingerprints and keys, and shows a sample of each cause', async () => {
  await store(300, 100);
  await storeRecords(database.db, topic, [{ key: null, value: 'no key' }]);
  const redrive = await leaseRedrive(database.db, { state: 'planning' });
  await planRedrive(depsOf(database.db, 1000), redrive, leased);
  const counts = (await rowOf(redrive))?.counts;
  assert.deepEqual(counts?.['keys'], { distinct: 100, longest: 3, without_key: 1 });
  assert.deepEqual(counts['fingerprints'], [
    { fingerprint: 'v2:1', count: 100 },
    { fingerprint: 'v2:2', count: 100 },
    { fingerprint: 'v2:0', count: 100 },
    { fingerprint: null, count: 1 },
  ]);
  assert.equal((counts['sample_ids'] as readonly string[]).length, 4);
});

test('at most a hundred excluded messages are listed per reason', async () => {
  await store(150, 10);
  await database.db.query(sql`UPDATE dlq.dlq_messages SET status = 'DEAD'`);
  const redrive = await leaseRedrive(database.db, { state: 'planning' });
  await planRedrive(depsOf(database.db, 1000), redrive, leased);
  const excluded = (await rowOf(redrive))?.counts?.['excluded'] as Excluded | undefined;
  assert.equal(excluded?.length, 1);
  const [only] = excluded;
  assert.deepEqual([only?.reason, only?.count, only?.sample_ids.length], ['dead', 150, 100]);
});

type Broker = NonNullable<PlanDeps['broker']>;

/** `audit` has read the topic, `other` has not. */
const brokerWithReaders: Broker = {
  groups: async () => ['audit', 'other'],
  committed: async (group) =>
    group === 'audit' ? [{ topic, topicId: 'id', partition: 0, offset: 5n, metadata: '' }] : [],
  partitions: async () => ({ clusterId: 'c', partitions: [], troubles: [] }),
};

test('a plan names the groups that read a topic, also those that did not fail on its messages', async () => {
  await store(3, 3);
  await database.db.query(sql`UPDATE dlq.dlq_messages SET consumer_group = 'billing'`);
  const redrive = await leaseRedrive(database.db, { state: 'planning' });
  await planRedrive({ ...depsOf(database.db, 1000), broker: brokerWithReaders }, redrive, leased);
  const counts = (await rowOf(redrive))?.counts;
  assert.deepEqual(counts?.['targets'], [
    { topic, count: 3, groups: ['audit', 'billing'], failed_groups: ['billing'] },
  ]);
  assert.equal(counts['groups_error'], null);
});

test('a plan is made although the broker does not tell who reads its topics, and says so', async () => {
  await store(2, 2);
  await database.db.query(sql`UPDATE dlq.dlq_messages SET consumer_group = 'billing'`);
  const groups = async () => assert.fail('GROUP_AUTHORIZATION_FAILED');
  const redrive = await leaseRedrive(database.db, { state: 'planning' });
  const deps = { ...depsOf(database.db, 1000), broker: { ...brokerWithReaders, groups } };
  await planRedrive(deps, redrive, leased);
  const row = await rowOf(redrive);
  assert.equal(row?.state, 'planned');
  assert.deepEqual(row.counts?.['targets'], [
    { topic, count: 2, groups: ['billing'], failed_groups: ['billing'] },
  ]);
  assert.equal(row.counts['groups_error'], 'GROUP_AUTHORIZATION_FAILED');
});

test('a plan says which redrives have messages of its filter', async () => {
  await store(5, 5);
  const others = [];
  for (const state of ['paused', 'stopped', 'planned'] as const)
    others.push(await leaseRedrive(database.db, { state }));
  for (const [i, { id }] of others.entries())
    await database.db.query(sql`
      INSERT INTO dlq.redrive_items (redrive_id, position, message_id, planned_epoch, target)
      SELECT ${id}::uuid, row_number() OVER (), m.id, 0, ${topic}
      FROM (SELECT id FROM dlq.dlq_messages ORDER BY created_at OFFSET ${i} LIMIT ${i + 1}) AS m`);
  const redrive = await leaseRedrive(database.db, { state: 'planning' });
  await planRedrive(depsOf(database.db, 1000), redrive, leased);
  const counts = (await rowOf(redrive))?.counts;
  // A plan that was not started excludes nothing.
  assert.equal(counts?.['selected'], 2);
  assert.deepEqual(counts['overlaps'], [
    { redrive_id: others[1]?.id, count: 2 },
    { redrive_id: others[0]?.id, count: 1 },
  ]);
});
