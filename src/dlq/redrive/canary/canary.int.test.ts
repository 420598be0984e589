import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import * as fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../../../../tests/support/database.ts';
import { claimAll, settleAll, startRedrive } from '../../../../tests/support/running-redrive.ts';
import { systemClock } from '../../../kernel/clock.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { tooManyReturned, type Canary } from '../../domain/canary.ts';
import { reapAttempts } from '../settle-messages.ts';
import type { LeasedRedrive } from '../planned/redrives-table.ts';
import type { ConfirmDeps } from './confirm-stage.ts';
import { chooseDraw, storeDraw } from './draw-stage.ts';
import { readShare } from './read-stage.ts';
import { createCanaryRun, type CanaryRun } from './run-canary.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
afterEach(() =>
  database.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.message_history, dlq.redrives, dlq.redrive_items`),
);

const canary: Canary = { stages: [2, 4], watch_seconds: 60, stop_percent: 30 };
const published = { end: 'published', partition: 0, offset: 7n } as const;

/** One consumer group that has read everything; `onAsked` runs while a window is being confirmed. */
function brokerWith(onAsked: () => Promise<unknown> = async () => {}): ConfirmDeps['broker'] {
  return {
    groups: async () => ['billing'],
    committed: async () => [
      { topic: 'orders.v1', topicId: 'none', partition: 0, offset: 100n, metadata: '' },
    ],
    async partitions(matches) {
      if (matches('orders.dlq')) await onAsked();
      return { clusterId: 'c', partitions: [], troubles: [] };
    },
  };
}

function runOf(
  redrive: LeasedRedrive,
  broker = brokerWith(),
  { db }: Pick<TestDatabase, 'db'> = database,
): CanaryRun {
  return createCanaryRun(
    { db, broker, isDeadLetterTopic: (topic) => topic.endsWith('.dlq'), clock: systemClock },
    redrive,
  );
}

const signal = new AbortController().signal;
const drawn = async (): Promise<readonly unknown[]> => {
  const rows = await database.db.query<{ stage: number | null }>(sql`
    SELECT stage FROM dlq.redrive_items ORDER BY position`);
  return rows.map(({ stage }) => stage);
};
const stageOf = async (): Promise<number | null> => {
  const [row] = await database.db.query<{ stage: number | null }>(sql`SELECT stage FROM dlq.redrives`);
  return row?.stage ?? null;
};

/** Draws, sends and settles the stage, and lets its window pass. */
async function sendStage(redrive: LeasedRedrive, run: CanaryRun): Promise<number> {
  assert.deepEqual(await run.next(signal), { isNewPass: true, restMs: 0 });
  const claimed = await claimAll(database.db, redrive);
  await settleAll(database.db, redrive, { claimed, outcome: published });
  assert.deepEqual(await run.next(signal), { isNewPass: true, restMs: 0 });
  await database.db.query(sql`UPDATE dlq.redrives SET watch_until = clock_timestamp()`);
  return claimed.batch.messages.length;
}

test('a stage claims what it has drawn, and nothing else', async () => {
  const redrive = await startRedrive(database.db, ['a', 'a', 'b', 'c', 'd', 'e'], { canary });
  assert.equal((await claimAll(database.db, redrive)).batch.messages.length, 0);
  const run = runOf(redrive);
  assert.equal(await sendStage(redrive, run), 2);
  assert.deepEqual(await drawn(), [1, null, 1, null, null, null]);
  assert.equal((await claimAll(database.db, redrive)).batch.messages.length, 0);
  await run.next(signal);
  assert.equal(await stageOf(), 2);
  assert.equal(await sendStage(redrive, run), 2);
  await run.next(signal);
  assert.equal(await stageOf(), 3);
  assert.equal((await claimAll(database.db, redrive)).batch.messages.length, 2);
  assert.deepEqual(await drawn(), [1, 2, 1, 2, 3, 3]);
});

test('a stage whose messages were not published draws more', async () => {
  const redrive = await startRedrive(database.db, ['a', 'b', 'c', 'd'], { canary });
  const run = runOf(redrive);
  await run.next(signal);
  const claimed = await claimAll(database.db, redrive);
  await settleAll(database.db, redrive, { claimed, outcome: { end: 'failed', error: 'too large' } });
  await run.next(signal);
  assert.deepEqual(await drawn(), [1, 1, 1, 1]);
});

test('a stage whose messages were lost with their process draws others, and waits while they are in flight', async () => {
  const redrive = await startRedrive(database.db, ['a', 'b', 'c', 'd'], { canary });
  await runOf(redrive).next(signal);
  await claimAll(database.db, redrive, 0);
  const successor = runOf(redrive);
  assert.deepEqual(await successor.next(signal), { isNewPass: true, restMs: 500 });
  assert.deepEqual(await drawn(), [1, 1, null, null]);
  await reapAttempts(database.db);
  await successor.next(signal);
  assert.deepEqual(await drawn(), [1, 1, 1, 1]);
});

for (const [late, expected] of [
  [0, [1, 1, 1, 1]],
  [1, [1, null, 1, 1]],
  [2, [null, null, 1, 1]],
] as const)
  test(`a draw takes no more than the stage still wants when ${late} in doubt are acknowledged meanwhile`, async () => {
    const redrive = await startRedrive(database.db, ['a', 'b', 'c', 'd'], { canary });
    await database.db.query(sql`
      UPDATE dlq.redrive_items SET stage = 1, claim_epoch = 1, outcome = 'unknown' WHERE position > 2`);
    const acknowledge = () =>
      database.db.query(sql`
        UPDATE dlq.redrive_items SET outcome = 'published', settled_at = clock_timestamp()
        WHERE position > 2 AND position <= ${2 + late}`);
    let transactions = 0;
    const db: Database = {
      ...database.db,
      async transaction(work, options) {
        const value = await database.db.transaction(work, options);
        transactions += 1;
        // The first decides to draw, the second chooses, the third stores.
        if (transactions === 2) await acknowledge();
        return value;
      },
    };
    await runOf(redrive, brokerWith(), { db }).next(signal);
    assert.equal(transactions, 3);
    assert.deepEqual(await drawn(), expected);
  });

test('what comes back while a window is being confirmed keeps it from closing', async () => {
  const redrive = await startRedrive(database.db, ['a', 'b', 'c'], { canary });
  const comeBack = () =>
    database.db.query(sql`
      UPDATE dlq.redrive_items SET outcome = 'came_back', came_back_at = clock_timestamp()
      WHERE outcome = 'published'`);
  const run = runOf(redrive, brokerWith(comeBack));
  await sendStage(redrive, run);
  await run.next(signal);
  assert.equal(await stageOf(), 1);
  assert.equal(await run.next(signal), 'ended');
  const [row] = await database.db.query(sql`SELECT state, state_reason FROM dlq.redrives`);
  assert.match(JSON.stringify(row), /"stopped".*2 of 2 messages came back/);
});

test('a process that lost the redrive decides nothing', async () => {
  const redrive = await startRedrive(database.db, ['a', 'b'], { canary });
  const lost = { ...redrive, lease: { ...redrive.lease, epoch: redrive.lease.epoch - 1n } };
  assert.equal(await runOf(lost).next(signal), 'ended');
  assert.deepEqual(await drawn(), [null, null]);
});

/** A redrive in its last stage whose messages were acknowledged in order, one per millisecond; these came back. */
async function sendRest(count: number, cameBack: readonly number[]): Promise<LeasedRedrive> {
  const redrive = await startRedrive(database.db, [], { canary: { ...canary, stop_percent: 10 } });
  await database.db.query(sql`UPDATE dlq.redrives SET stage = 3`);
  await database.db.query(sql`
    INSERT INTO dlq.redrive_items
      (redrive_id, position, message_id, planned_epoch, target, stage, claim_epoch, outcome, came_back_at, settled_at)
    SELECT ${redrive.id}::uuid, n, gen_random_uuid(), 0, 'orders.v1', 3, 1,
           CASE WHEN n = ANY(${cameBack}::int[]) THEN 'came_back' ELSE 'published' END,
           CASE WHEN n = ANY(${cameBack}::int[]) THEN clock_timestamp() + n * interval '1 microsecond' END,
           clock_timestamp() - interval '1 hour' + n * interval '1 millisecond'
    FROM generate_series(1, ${count}) AS n`);
  return redrive;
}

const isOver = async ({ id }: LeasedRedrive): Promise<boolean> => {
  const share = await readShare(database.db, id);
  assert.ok(share);
  return tooManyReturned(share.canary, share) !== null;
};
const range = (from: number, count: number): readonly number[] =>
  Array.from({ length: count }, (_, i) => from + i);

test('while the rest is sent, the limit applies to the latest 200 messages that could have come back', async () => {
  assert.equal(await isOver(await sendRest(1000, range(300, 20))), false);
  assert.equal(await isOver(await sendRest(1000, range(300, 21))), true);
  // Of the latest 200 none has come back yet, and the messages came back over a longer time.
  assert.equal(
    await isOver(
      await sendRest(
        1000,
        range(1, 50).map((n) => n * 10),
      ),
    ),
    false,
  );
  assert.equal(await isOver(await sendRest(1000, [])), false);
});

test('after a resume what came back before it no longer counts', async () => {
  const redrive = await sendRest(300, range(100, 50));
  assert.equal(await isOver(redrive), true);
  await database.db.query(
    sql`UPDATE dlq.redrives SET counted_from = clock_timestamp() + interval '1 second'`,
  );
  assert.equal(await isOver(redrive), false);
  await database.db.query(sql`
    UPDATE dlq.redrive_items SET outcome = 'came_back', came_back_at = clock_timestamp() + interval '2 seconds'
    WHERE position BETWEEN 200 AND 230`);
  assert.equal(await isOver(redrive), true);
});

type Planned = Readonly<{ key: string | null; target: string; cause: string | null }>;

test('a draw takes the heads of keys first, and the causes in turn', async () => {
  const items = fc.array(
    fc.record({
      key: fc.constantFrom(null, 'a', 'b', 'c', 'd'),
      target: fc.constantFrom('orders.v1', 'bills.v1'),
      cause: fc.constantFrom(null, 'v2:1', 'v2:2'),
    }),
    { minLength: 1, maxLength: 25 },
  );
  const counts = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(items, counts, async (planned, bounds) => {
      const redrive = await startRedrive(database.db, []);
      await insertItems(redrive.id, planned);
      const before = new Set<number>();
      for (const [i, count] of bounds.entries()) {
        const positions = await chooseDraw(database.db, { redriveId: redrive.id, count, hasOrder: true });
        await storeDraw(database.db, { redriveId: redrive.id, stage: i + 1, positions });
        const rows = await database.db.query<{ position: number }>(sql`
          SELECT position FROM dlq.redrive_items WHERE redrive_id = ${redrive.id} AND stage = ${i + 1}`);
        const now = rows.map(({ position }) => position);
        assert.equal(now.length, Math.min(count, planned.length - before.size));
        checkDraw(planned, before, now);
        for (const position of now) before.add(position);
      }
    }),
    { numRuns: 30 },
  );
});

async function insertItems(redriveId: string, planned: readonly Planned[]): Promise<void> {
  await database.db.query(sql`
    INSERT INTO dlq.redrive_items (redrive_id, position, message_id, planned_epoch, target, key_hash, fingerprint)
    SELECT ${redriveId}::uuid, n, gen_random_uuid(), 0, item->>'target',
           sha256(convert_to(item->>'key', 'UTF8')), item->>'cause'
    FROM jsonb_array_elements(${JSON.stringify(planned)}::jsonb) WITH ORDINALITY AS items (item, n)`);
}

/** How many undrawn items of its key are in front of it: 0 is the head. */
function checkDraw(planned: readonly Planned[], before: ReadonlySet<number>, now: readonly number[]): void {
  const keyOf = ({ key, target }: Planned, n: number): string =>
    key === null ? `#${n}` : `${target} ${key}`;
  const causeOf = ({ target, cause }: Planned): string => `${target} ${cause}`;
  const places = new Map<number, number>();
  const seen = new Map<string, number>();
  for (const [i, item] of planned.entries()) {
    if (before.has(i + 1)) continue;
    const key = keyOf(item, i);
    places.set(i + 1, seen.get(key) ?? 0);
    seen.set(key, (seen.get(key) ?? 0) + 1);
  }
  const placeOf = (position: number): number => places.get(position) ?? 0;
  const left = [...places.keys()].filter((position) => !now.includes(position));
  const deepest = Math.max(...now.map(placeOf));
  for (const position of left) assert.ok(placeOf(position) >= deepest, 'an earlier place was left');

  // Of the deepest place, whose items were not all taken, no cause is two ahead of one that was left.
  const tested = (cause: string): number =>
    [...before, ...now.filter((position) => placeOf(position) === deepest)].filter((position) => {
      const item = planned[position - 1];
      return item !== undefined && causeOf(item) === cause;
    }).length;
  const taken = now.filter((position) => placeOf(position) === deepest);
  for (const one of taken)
    for (const other of left.filter((position) => placeOf(position) === deepest)) {
      const [a, b] = [planned[one - 1], planned[other - 1]];
      assert.ok(a && b);
      const ahead = tested(causeOf(a)) - tested(causeOf(b));
      assert.ok(ahead <= 1, `${causeOf(a)} is ${ahead} ahead of ${causeOf(b)}`);
    }
}
