import assert from 'node:assert/strict';
import { partitionsOf, readAll } from '../../support/broker-conformance.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';
import type { Replica } from './start-replica.ts';
import type { Scene, Status } from './scene.ts';
import { until } from './until.ts';

export type Row = Readonly<{
  id: string;
  /** What its producer called it. */
  name: string;
  status: Status;
  retryCount: number;
  maxRetries: number;
  attemptNo: number;
  owner: string | null;
  epoch: bigint;
}>;

/** The attempts that were under way when a process died: what may have been sent and is not settled. */
export type InFlight = readonly Row[];

export async function rowsOf({ db, dlqTopic }: Scene): Promise<readonly Row[]> {
  return db.query<Row>(sql`
    SELECT id, payload->>'id' AS name, status, retry_count AS "retryCount", max_retries AS "maxRetries",
           attempt_no AS "attemptNo", lease_owner AS owner, lease_epoch AS epoch
    FROM dlq.dlq_messages WHERE source_topic = ${dlqTopic} ORDER BY created_at, id`);
}

export async function inFlight(scene: Scene, of?: Replica): Promise<InFlight> {
  const isOf = (owner: string | null): boolean => of === undefined || owner?.includes(`-${of.pid}-`) === true;
  return (await rowsOf(scene)).filter(({ status, owner }) => status === 'RETRYING' && isOf(owner));
}

/** The messages whose attempt the reaper has ended, where a process has lived on and nobody could look. */
export async function lostAttempts(scene: Scene): Promise<InFlight> {
  const ended = await scene.db.query<{ id: string }>(sql`
    SELECT DISTINCT message_id AS id FROM dlq.message_history WHERE event = 'lease_expired'`);
  const ids = new Set(ended.map(({ id }) => id));
  return (await rowsOf(scene)).filter(({ id }) => ids.has(id));
}

/** Resolves when the attempts of lost workers have been ended. */
export async function untilReaped(scene: Scene): Promise<void> {
  await until('no attempt is under way', async () => (await scene.count('RETRYING')) === 0 || null);
}

/**
 * What must hold after any fault, once the system is at rest: every dead letter is exactly one row and the
 * accounts prove it; every row rests in a status that a person or a retry can go on from; and the original topic
 * has no copy that an attempt under way at a crash does not explain.
 */
export async function checkLedger(
  scene: Scene,
  replica: Replica,
  crashes: readonly InFlight[] = [],
): Promise<readonly Row[]> {
  const rows = await rowsOf(scene);
  assert.deepEqual(
    rows.map(({ name }) => name).toSorted(),
    scene.published().toSorted(),
    'every dead letter is exactly one row',
  );
  for (const row of rows) {
    assert.notEqual(row.status, 'RETRYING', `${row.name} rests`);
    assert.ok(row.retryCount <= row.maxRetries, `${row.name} has ${row.retryCount} retries`);
  }
  await checkOffsets(scene, replica);
  await checkCopies(scene, rows, crashes);
  return rows;
}

async function checkOffsets({ db, broker, dlqTopic }: Scene, replica: Replica): Promise<void> {
  const ends = await partitionsOf(broker, dlqTopic);
  const stored = await db.query<{ partition: number; rows: bigint; offsets: bigint }>(sql`
    SELECT source_partition AS partition, count(*) AS rows, count(DISTINCT source_offset) AS offsets
    FROM dlq.dlq_messages WHERE source_topic = ${dlqTopic} GROUP BY source_partition`);
  for (const { partition, rows, offsets } of stored) {
    assert.equal(rows, offsets, `no offset of partition ${partition} is stored twice`);
    assert.equal(rows, ends[partition]?.end, `no offset of partition ${partition} is missing`);
  }
  const answer = await replica.get('/api/v1/dlq/accounting');
  assert.equal(answer?.status, 200);
  const accounts = answer.body as Readonly<{
    balanced: boolean;
    partitions: readonly Readonly<{ partition: number; high_offset: number }>[];
  }>;
  assert.equal(accounts.balanced, true, JSON.stringify(accounts));
  assert.deepEqual(
    accounts.partitions.map(({ partition, high_offset }) => [partition, BigInt(high_offset)]),
    ends.map(({ partition, end }) => [partition, end]),
  );
}

async function checkCopies(scene: Scene, rows: readonly Row[], crashes: readonly InFlight[]): Promise<void> {
  const copies = await copiesOf(scene);
  for (const row of rows) {
    const sent = copies.get(row.name) ?? 0;
    const inDoubt = crashes.filter((crash) => crash.some(({ id }) => id === row.id)).length;
    assert.ok(sent <= 1 + inDoubt, `${row.name} was published ${sent} times, ${inDoubt} times in doubt`);
    assert.ok(sent <= row.attemptNo, `${row.name} was published ${sent} times in ${row.attemptNo} attempts`);
    if (row.status === 'RESOLVED') assert.ok(sent >= 1, `${row.name} is resolved and was published`);
  }
}

/** How often each dead letter has been published to where it belongs. */
export async function copiesOf({ broker, originalTopic }: Scene): Promise<ReadonlyMap<string, number>> {
  const copies = new Map<string, number>();
  for (const { value } of await readAll(broker, originalTopic)) {
    const { id } = JSON.parse(String(value)) as { id: string };
    copies.set(id, (copies.get(id) ?? 0) + 1);
  }
  return copies;
}

/** The names of those that were published more than once. */
export async function doubled(scene: Scene): Promise<ReadonlySet<string>> {
  return new Set([...(await copiesOf(scene))].flatMap(([name, copies]) => (copies > 1 ? [name] : [])));
}
