import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isSettled, readLastNumber, sealRound, takeMark } from '../../src/audit/seal/seal-round.ts';
import type { Seal } from '../../src/audit/chain.ts';
import { examineAuditChain } from '../../src/cli/doctor/checks/audit-log.ts';
import { exitCodes } from '../../src/cli/exit-code.ts';
import { Sql, sql } from '../../src/platform/postgres/sql.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { runRedrive } from '../support/redrive-process.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

/** What the owner of the database does to the audit log, seen over HTTP, on the command line and by doctor. */
let database: TestDatabase;
let system: TestSystem;
let anchors: readonly Seal[];
const folder = mkdtempSync(join(tmpdir(), 'redrive-anchors-'));
const anchorFile = join(folder, 'anchors.ndjson');

before(async () => {
  database = await createTestDatabase();
  const sealed: Seal[] = [];
  for (let block = 0; block < 3; block += 1) sealed.push(...(await recordAndSeal(3)));
  anchors = sealed;
  assert.equal(anchors.length, 3);
  writeFileSync(anchorFile, anchors.map((seal) => `${JSON.stringify(seal)}\n`).join(''));
  await asOwner(
    'CREATE TABLE kept_events AS TABLE audit.events',
    'CREATE TABLE kept_seals AS TABLE audit.seals',
  );
  // Nobody seals meanwhile.
  system = await startTestSystem({ database, env: { ROLES: 'api' } });
});
after(async () => {
  await system.stop();
  await database.drop();
  rmSync(folder, { recursive: true });
});

async function recordAndSeal(count: number): Promise<readonly Seal[]> {
  const { db } = database;
  await db.query(sql`
    SELECT audit.record('jobs:queues:pause', 'jobs/queues/' || n, 'tested') FROM generate_series(1, ${count}) AS n`);
  const mark = await takeMark(db, await readLastNumber(db));
  await eventually(async () => assert.ok(await isSettled(db, mark)));
  return (await sealRound(db, mark, async () => {}))?.seals ?? [];
}

async function asOwner(...statements: readonly string[]): Promise<void> {
  await database.db.transaction(async (tx) => {
    await tx.query(new Sql([`SET LOCAL session_replication_role = 'replica'`], []));
    for (const statement of statements) await tx.query(new Sql([statement], []));
  });
}

const mend = (): Promise<void> =>
  asOwner(
    'TRUNCATE audit.events, audit.seals',
    'INSERT INTO audit.events SELECT * FROM kept_events',
    'INSERT INTO audit.seals SELECT * FROM kept_seals',
  );

async function sealAnew(): Promise<void> {
  const { db } = database;
  const mark = await takeMark(db, await readLastNumber(db));
  await eventually(async () => assert.ok(await isSettled(db, mark)));
  await sealRound(db, mark, async () => {});
}

type Verified = Readonly<{ ok: boolean; first_bad_block: number | null; problem: string | null }>;

const damages: readonly Readonly<{
  what: string;
  statements: readonly string[];
  problem: string;
  block: number;
  /** The chain is whole in itself; only anchors tell. */
  needsAnchors?: true;
}>[] = [
  {
    what: 'a changed row',
    statements: [`UPDATE audit.events SET reason = 'x' WHERE seq = 5`],
    problem: 'events_changed',
    block: 2,
  },
  {
    what: 'a removed row',
    statements: ['DELETE FROM audit.events WHERE seq = 5'],
    problem: 'events_missing',
    block: 2,
  },
  {
    what: 'an inserted row',
    statements: [
      `INSERT INTO audit.events SELECT (jsonb_populate_record(e, jsonb_build_object('at', e.at + interval '1 second'))).*
       FROM audit.events e WHERE seq = 5`,
    ],
    problem: 'events_added',
    block: 2,
  },
  {
    what: 'a removed block',
    statements: ['DELETE FROM audit.seals WHERE block = 2'],
    problem: 'block_missing',
    block: 2,
  },
  {
    what: 'a removed end of the chain',
    statements: ['DELETE FROM audit.seals WHERE block = 3', 'DELETE FROM audit.events WHERE seq > 6'],
    problem: 'block_missing',
    block: 3,
    needsAnchors: true,
  },
  {
    what: 'a chain that was made anew after a change',
    statements: [`UPDATE audit.events SET reason = 'x' WHERE seq = 5`, 'TRUNCATE audit.seals'],
    problem: 'anchor_differs',
    block: 1,
    needsAnchors: true,
  },
];

for (const { what, statements, problem, block, needsAnchors = false } of damages)
  test(`${what} is found through every door${needsAnchors ? ' that gets the anchors' : ''}`, async (t) => {
    t.after(mend);
    await asOwner(...statements);
    if (problem === 'anchor_differs') await sealAnew();
    const verify = async (body: object): Promise<Verified> =>
      (await system.api.post<Verified>('/api/v1/audit/verify', body)).body;
    const noted = anchors.map((seal) => ({ block: seal.block, hash: seal.hash }));
    const bad = { ok: false, first_bad_block: block, problem };
    const { ok, first_bad_block, problem: found } = await verify({ anchors: noted });
    assert.deepEqual({ ok, first_bad_block, problem: found }, bad);
    assert.equal((await verify({})).ok, needsAnchors);

    const env = { REDRIVE_URL: system.url };
    const withAnchors = await runRedrive(['audit', 'verify', '--anchors', anchorFile], env);
    assert.equal(withAnchors.code, exitCodes.failed, withAnchors.err);
    assert.match(withAnchors.out, new RegExp(`block ${block}: ${problem}`));
    const doctor = await examineAuditChain(database.db);
    assert.equal(doctor.status, needsAnchors ? 'ok' : 'problem');
    if (!needsAnchors) assert.match(doctor.found, new RegExp(`the first bad block is ${block}: `));
  });

test('the mended log is whole through every door', async () => {
  const { code, out, err } = await runRedrive(['audit', 'verify', '--anchors', anchorFile], {
    REDRIVE_URL: system.url,
  });
  assert.equal(code, 0, err);
  assert.match(out, /the chain is whole/);
  assert.equal((await examineAuditChain(database.db)).status, 'ok');
});
