import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { testAct } from '../support/acts.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { recordAct } from '../../src/platform/audit/record-act.ts';
import { Sql } from '../../src/platform/postgres/sql.ts';
import { isSettled, readLastNumber, sealRound, takeMark } from '../../src/audit/seal/seal-round.ts';
import {
  examineAuditChain,
  examineAuditRights,
  examineAuditSeal,
} from '../../src/cli/doctor/checks/audit-log.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const run = (...statements: readonly string[]): Promise<void> =>
  database.db.transaction(async (tx) => {
    for (const statement of statements) await tx.query(new Sql([statement], []));
  });
const withoutTriggers = `SET LOCAL session_replication_role = 'replica'`;
const record = (): Promise<void> =>
  database.db.transaction((tx) => recordAct(tx, testAct('jobs:jobs:cancel'), { resource: 'jobs/jobs/1' }));

async function seal(): Promise<void> {
  const mark = await takeMark(database.db, await readLastNumber(database.db));
  await eventually(async () => assert.ok(await isSettled(database.db, mark)));
  await sealRound(database.db, mark, async () => {});
}

test('the first block that does not fit to its events is a problem', async () => {
  assert.match((await examineAuditChain(database.db)).found, /nothing is sealed yet/);
  for (let i = 0; i < 3; i += 1) {
    await record();
    await seal();
  }
  assert.match((await examineAuditChain(database.db)).found, /all 3 blocks fit/);
  await run(withoutTriggers, `UPDATE audit.events SET reason = 'x' WHERE seq = 2`);
  const { status, found } = await examineAuditChain(database.db);
  assert.equal(status, 'problem');
  assert.match(found, /the first bad block is 2: /);
  await run(withoutTriggers, `UPDATE audit.events SET reason = NULL WHERE seq = 2`);
});

test('events that nobody seals are a warning after ten minutes', async () => {
  assert.match((await examineAuditSeal(database.db)).found, /every event is sealed/);
  await record();
  const fresh = await examineAuditSeal(database.db);
  assert.equal(fresh.status, 'ok');
  assert.match(fresh.found, /the last block is \d+ s old; the oldest event that is not sealed is/);
  await run(withoutTriggers, `UPDATE audit.events SET at = at - interval '11 minutes' WHERE seq = 4`);
  const stale = await examineAuditSeal(database.db);
  assert.equal(stale.status, 'warning');
  assert.match(stale.advice ?? '', /AuditSealStale/);
});

test('a role that owns the log is reported, in production as a warning; one that only adds is not', async () => {
  const owner = await examineAuditRights(database.db, false);
  assert.equal(owner.status, 'ok');
  assert.match(owner.found, /append-only is not enforced/);
  assert.equal((await examineAuditRights(database.db, true)).status, 'warning');

  const role = `adder_${randomBytes(4).toString('hex')}`;
  await run(`CREATE ROLE ${role}`, `GRANT USAGE ON SCHEMA audit TO ${role}`);
  const asRole = (): Promise<string> =>
    database.db.transaction(async (tx) => {
      await tx.query(new Sql([`SET LOCAL ROLE ${role}`], []));
      const { status, found } = await examineAuditRights(tx, true);
      return `${status}: ${found}`;
    });
  try {
    await run(`GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA audit TO ${role}`);
    assert.match(await asRole(), /^ok: append-only: /);
    await run(`GRANT DELETE ON audit.seals TO ${role}`);
    assert.match(await asRole(), /^warning: /);
  } finally {
    await run(`DROP OWNED BY ${role}`, `DROP ROLE ${role}`);
  }
});

test('a trigger that is disabled or missing is a problem, also on a partition', async () => {
  for (const [breaks, mends] of [
    ['ALTER TABLE audit.events DISABLE TRIGGER USER', 'ALTER TABLE audit.events ENABLE TRIGGER USER'],
    [
      `ALTER TABLE audit.events_usual_${new Date().toISOString().slice(0, 7).replace('-', '_')} DISABLE TRIGGER events_are_not_changed`,
      'ALTER TABLE audit.events ENABLE TRIGGER USER',
    ],
    [
      'ALTER TRIGGER seals_are_chained ON audit.seals RENAME TO gone',
      'ALTER TRIGGER gone ON audit.seals RENAME TO seals_are_chained',
    ],
  ] as const) {
    await run(breaks);
    const broken = await examineAuditRights(database.db, false);
    assert.equal(broken.status, 'problem', breaks);
    assert.match(broken.found, /missing or disabled: \w+ on \w+/);
    await run(mends);
    assert.equal((await examineAuditRights(database.db, false)).status, 'ok', mends);
  }
});
