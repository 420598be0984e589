import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { testAct } from '../../../tests/support/acts.ts';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import type { Action } from '../../kernel/audit/actions.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { Sql, sql } from '../../platform/postgres/sql.ts';
import type { Seal } from '../chain.ts';
import { verifyChain, type Anchor } from '../verify/verify-chain.ts';
import { createWriteLines } from './audit-lines.ts';
import { isSettled, readLastNumber, sealRound, takeMark } from './seal-round.ts';

/** The chain, made of real events, and what somebody who owns the tables does to it. */
let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const plain = (text: string): Sql => new Sql([text], []);
const asOwner = async (...statements: readonly string[]): Promise<void> => {
  // Without its triggers, as somebody who owns the tables can do it.
  await database.db.transaction(async (tx) => {
    await tx.query(plain(`SET LOCAL session_replication_role = 'replica'`));
    for (const statement of statements) await tx.query(plain(statement));
  });
};

let anchors: Anchor[] = [];
beforeEach(async () => {
  await asOwner(
    'TRUNCATE audit.events, audit.seals, audit.dropped_months',
    'ALTER SEQUENCE audit.events_seq RESTART',
  );
  anchors = [];
});

async function record(count: number, tx?: Queryable, action: Action = 'jobs:jobs:cancel'): Promise<void> {
  if (tx === undefined) return database.db.transaction((own) => record(count, own, action));
  for (let i = 0; i < count; i++)
    await recordAct(tx, testAct(action, `reason ${i}`), {
      resource: `jobs/jobs/${i}`,
      names: { queues: ['mail'] },
      detail: { n: i, text: 'ä "quoted"' },
    });
}

async function seal(): Promise<readonly Seal[]> {
  const mark = await takeMark(database.db, await readLastNumber(database.db));
  // Other tests have transactions on the same server.
  await eventually(async () => assert.ok(await isSettled(database.db, mark)));
  const seals: Seal[] = [];
  for (;;) {
    const round = await sealRound(database.db, mark, async () => {});
    if (round === null) break;
    seals.push(...round.seals);
  }
  anchors.push(...seals.map(({ block, hash }) => ({ block, hash })));
  return seals;
}

/** Three rounds; the second one has events that are kept long, in a block of their own. */
async function sealThree(): Promise<void> {
  await record(5);
  await seal();
  await record(3);
  await record(2, undefined, 'saga:sagas:repair');
  await seal();
  await record(4);
  await seal();
}

test('events are sealed in blocks by partition, and the chain is verified', async () => {
  await sealThree();
  const checked = await verifyChain(database.db, { anchors });
  assert.deepEqual(
    { ...checked, head: checked.head?.block },
    { finding: null, blocks: 4, events: 14, nextAfterBlock: null, head: 4, unsealed: 0 },
  );
  await record(2);
  assert.equal((await verifyChain(database.db, {})).unsealed, 2);
});

test('more events than fit into one round become several', async () => {
  await record(2500);
  const seals = await seal();
  assert.deepEqual(
    seals.map(({ events, after_seq, last_seq }) => [events, after_seq, last_seq]),
    [
      [1000, 0, 1000],
      [1000, 1000, 2000],
      [500, 2000, 2500],
    ],
  );
  const first = await verifyChain(database.db, {}, 0);
  assert.deepEqual([first.finding, first.blocks, first.nextAfterBlock], [null, 1, 1]);
  const rest = await verifyChain(database.db, { afterBlock: 1 });
  assert.deepEqual([rest.finding, rest.blocks, rest.nextAfterBlock], [null, 2, null]);
});

const changes: readonly (readonly [
  what: string,
  statements: readonly string[],
  problem: string,
  block: number,
])[] = [
  ['the reason of a row', [`UPDATE audit.events SET reason = 'x' WHERE seq = 2`], 'events_changed', 1],
  [
    'a microsecond',
    [`UPDATE audit.events SET at = at + interval '1 microsecond' WHERE seq = 7`],
    'events_changed',
    3,
  ],
  [
    'a number in a detail',
    [`UPDATE audit.events SET detail = '{"n": 9}' WHERE seq = 2`],
    'events_changed',
    1,
  ],
  ['one removed row', ['DELETE FROM audit.events WHERE seq = 3'], 'events_missing', 1],
  ['the last row, removed', ['DELETE FROM audit.events WHERE seq = 14'], 'events_missing', 4],
  ['all rows of a block, removed', [`DELETE FROM audit.events WHERE kept = 'long'`], 'events_missing', 2],
  [
    'two rows that changed their numbers',
    [
      'UPDATE audit.events SET seq = 33 - seq WHERE seq IN (1, 2)',
      'UPDATE audit.events SET seq = seq - 30 WHERE seq > 30',
    ],
    'events_changed',
    1,
  ],
  [
    'an inserted row',
    ['UPDATE audit.events SET seq = 100 WHERE seq = 2', insertCopy(1, 2)],
    'events_changed',
    1,
  ],
  [
    'a row inserted with a number that is taken',
    [insertCopy(1, 1, `at + interval '1 second'`)],
    'events_added',
    1,
  ],
  ['a row inserted before the first', [insertCopy(1, 0)], 'events_added', 1],
  ['a row in a partition that had none', [insertCopy(9, 2)], 'events_added', 1],
  ['a removed block', ['DELETE FROM audit.seals WHERE block = 1'], 'block_missing', 1],
  [
    'a whole block, removed with its rows',
    [`DELETE FROM audit.seals WHERE block = 4`, 'DELETE FROM audit.events WHERE seq > 10'],
    'block_missing',
    4,
  ],
  [
    'a block that shall look older, with its rows dropped',
    [
      `UPDATE audit.seals SET month = '2020-01-01' WHERE block = 1`,
      'DELETE FROM audit.events WHERE seq <= 5',
      `INSERT INTO audit.dropped_months (kept, begins_at, ends_at, events) VALUES ('usual', '2020-01-01Z', '2020-02-01Z', 5)`,
    ],
    'block_changed',
    1,
  ],
  [
    'a block with another hash',
    [`UPDATE audit.seals SET hash = sha256('x') WHERE block = 2`],
    'anchor_differs',
    2,
  ],
];

function insertCopy(of: number, seq: number, at = 'at'): string {
  return `INSERT INTO audit.events SELECT (jsonb_populate_record(e, jsonb_build_object('seq', ${seq}, 'at', ${at.replace('at', 'e.at')}))).* FROM audit.events e WHERE seq = ${of}`;
}

for (const [what, statements, problem, block] of changes)
  test(`verification finds ${what}`, async () => {
    await sealThree();
    await asOwner(...statements);
    const { finding } = await verifyChain(database.db, { anchors });
    assert.deepEqual([finding?.problem, finding?.block], [problem, block], finding?.message);
  });

test('a chain that was made anew after a change is found by its anchors', async () => {
  await sealThree();
  await asOwner(`UPDATE audit.events SET reason = 'x' WHERE seq = 2`, 'TRUNCATE audit.seals');
  const before = anchors;
  await seal();
  assert.equal((await verifyChain(database.db, {})).finding, null);
  const { finding } = await verifyChain(database.db, { anchors: before });
  assert.deepEqual([finding?.problem, finding?.block], ['anchor_differs', 1]);
});

test('events are not sealed while a transaction runs that may still write one before them', async () => {
  const { db } = database;
  const early = Promise.withResolvers<void>();
  const written = Promise.withResolvers<void>();
  const slow = db.transaction(async (tx) => {
    await recordAct(tx, testAct('jobs:jobs:cancel'), { resource: 'jobs/jobs/slow' });
    written.resolve();
    await early.promise;
  });
  await written.promise;
  await record(2);
  const mark = await takeMark(db, await readLastNumber(db));
  assert.equal(mark.seq, 3);
  assert.equal(await isSettled(db, mark), false);
  early.resolve();
  await slow;
  await eventually(async () => assert.ok(await isSettled(db, mark)));
  const round = await sealRound(db, mark, async () => {});
  assert.deepEqual(
    round?.events.map(({ seq }) => seq),
    [1, 2, 3],
  );
});

test('events are not sealed while a younger transaction runs that has the smaller number', async () => {
  const { db } = database;
  const ready = Promise.withResolvers<void>();
  const end = Promise.withResolvers<void>();
  let slow = Promise.resolve();
  await db.transaction(async (older) => {
    await older.query(sql`SELECT pg_current_xact_id()`);
    slow = db.transaction(async (younger) => {
      await record(1, younger);
      ready.resolve();
      await end.promise;
    });
    await ready.promise;
    await record(1, older);
  });
  const mark = await takeMark(db, await readLastNumber(db));
  assert.equal(mark.seq, 2);
  assert.equal(await isSettled(db, mark), false);
  end.resolve();
  await slow;
  assert.deepEqual(
    (await seal()).map(({ events }) => events),
    [2],
  );
  assert.equal((await verifyChain(db, { anchors })).finding, null);
});

test('of two processes that seal at once one succeeds', async () => {
  const { db } = database;
  await record(3);
  const mark = await takeMark(db, await readLastNumber(db));
  const both = Promise.withResolvers<void>();
  let arrived = 0;
  const together = async (): Promise<void> => {
    arrived += 1;
    if (arrived === 2) both.resolve();
    await Promise.race([both.promise, new Promise((resolve) => setTimeout(resolve, 500))]);
  };
  const results = await Promise.allSettled([sealRound(db, mark, together), sealRound(db, mark, together)]);
  assert.deepEqual(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected']);
  const [row] = await db.query<{ count: number }>(sql`SELECT count(*)::int AS count FROM audit.seals`);
  assert.equal(row?.count, 1);
  assert.equal((await verifyChain(db, {})).finding, null);
});

test('a block is stored with what is sent to the outside, or not at all', async () => {
  await record(3);
  const mark = await takeMark(database.db, await readLastNumber(database.db));
  await assert.rejects(
    sealRound(database.db, mark, async () => {
      throw new Error('the anchor could not be added');
    }),
    /the anchor/,
  );
  assert.equal((await verifyChain(database.db, {})).unsealed, 3);
  assert.equal((await seal()).length, 1);
});

test('a month that was dropped by retention is not missing, and its blocks are still checked', async () => {
  const { db } = database;
  await record(3);
  await asOwner(
    'CREATE TABLE audit.events_usual_2020_01 (LIKE audit.events INCLUDING DEFAULTS INCLUDING CONSTRAINTS)',
    `ALTER TABLE audit.events_usual ATTACH PARTITION audit.events_usual_2020_01 FOR VALUES FROM ('2020-01-01Z') TO ('2020-02-01Z')`,
    `UPDATE audit.events SET at = '2020-01-07Z'`,
  );
  // Not sealed: it stays.
  await db.query(sql`SELECT audit.drop_old_months()`);
  await seal();
  await record(2);
  await seal();
  const [row] = await db.query<{ dropped: number }>(sql`SELECT audit.drop_old_months() AS dropped`);
  assert.equal(row?.dropped, 1);
  const { finding, events } = await verifyChain(db, { anchors });
  assert.deepEqual([finding, events], [null, 2]);
  await asOwner(`UPDATE audit.seals SET events = 2 WHERE block = 1`);
  assert.equal((await verifyChain(db, {})).finding?.problem, 'block_changed');
});

test('with `audit.lines` every event is a line of JSON, whatever the level', async () => {
  await record(2);
  const lines: string[] = [];
  const app = { name: 'redrive', version: '1', environment: 'test' };
  const write = createWriteLines({ app, audit: { lines: true } }, (event) => event, {
    write: (line) => lines.push(line),
  });
  await sealRound(
    database.db,
    await takeMark(database.db, await readLastNumber(database.db)),
    async (_tx, round) => write(round),
  );
  assert.deepEqual(
    lines
      .map((line) => JSON.parse(line) as { event: { seq: number; reason: string } })
      .map(({ event }) => event.seq),
    [1, 2],
  );
});
