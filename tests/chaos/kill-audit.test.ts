import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createApiClient } from '../support/api-client.ts';
import { childEnv } from '../support/child-env.ts';
import { createTestDatabase } from '../support/database.ts';
import { createMasterKeyFile, newMasterKey } from '../support/encryption.ts';
import { audience, startIssuer } from '../support/issuer.ts';
import {
  assertAnchored,
  countBlocks,
  expireSealLease,
  loggedBlocks,
  sentAnchors,
  untilSealed,
} from './support/audit-chain.ts';
import { hangsAt, type FaultPoint } from './support/faults.ts';
import { rowsOf, untilReaped } from './support/ledger.ts';
import { prepareChanges, settings, type Change } from './support/recorded-changes.ts';
import { retryOne } from './support/retry.ts';
import { openScene } from './support/scene.ts';
import { startReplica, type Replica } from './support/start-replica.ts';
import { until } from './support/until.ts';

/** Processes that are killed between a change, its row in the audit log, the row's block, and what is said of the block. */

/** Of a process that was killed: what it had not committed is rolled back. */
async function untilGone(db: Database): Promise<void> {
  await until('its transactions have ended', async () => {
    const rows = await db.query(sql`
      SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()`);
    return rows.length === 0;
  });
}

type Stored = Readonly<{ action: string; changed: boolean; recorded: boolean }>;

async function storedOf(db: Database, changes: readonly Change[]): Promise<readonly Stored[]> {
  return Promise.all(
    changes.map(async ({ action, resource, stored }) => {
      const changed = (await db.query(stored)).length > 0;
      const rows = await db.query(sql`
        SELECT 1 FROM audit.events WHERE action = ${action} AND starts_with(resource, ${resource})`);
      return { action, changed, recorded: rows.length > 0 };
    }),
  );
}

describe('A process that is killed', () => {
  it('between acts and their rows in the audit log leaves both or neither, which its heir seals', async (t) => {
    const database = await createTestDatabase();
    const issuer = await startIssuer();
    const folder = mkdtempSync(join(tmpdir(), 'redrive-kill-audit-'));
    const replicas: Replica[] = [];
    t.after(async () => {
      for (const replica of replicas) await replica.kill();
      await issuer.stop();
      await database.drop();
      rmSync(folder, { recursive: true });
    });
    const file = join(folder, 'config.yaml');
    const auth = { jwt: { issuer: issuer.url, audience }, api_keys: { enabled: true } };
    writeFileSync(file, JSON.stringify({ auth }));
    const changes = await prepareChanges(database);
    const authorization = `Bearer ${await issuer.sign({ sub: 'ada', roles: ['sys_admin'] })}`;
    const start = async (point?: FaultPoint): Promise<Replica> => {
      const env = { ...settings, DATABASE_URL: database.url, CONFIG_PATH: file, SAGA_WORKFLOW_DIR: folder };
      const faults = point === undefined ? [] : [{ at: point, act: 'hang' } as const];
      const replica = await startReplica(point === undefined ? { ...env, ROLES: 'api,workers' } : env, {
        faults,
      });
      replicas.push(replica);
      return replica;
    };

    /** Kills a process in which all acts have come to the same point. */
    const killAt = async (point: FaultPoint): Promise<readonly Stored[]> => {
      const victim = await start(point);
      const api = createApiClient(victim.url, { authorization });
      const answers = changes.map(({ path, body }) =>
        api.post(`/api/v1${path}`, body).then(
          ({ text }) => text,
          () => null,
        ),
      );
      await until(
        `all acts are at ${point}`,
        async () => victim.log().split(hangsAt(point)).length - 1 >= changes.length,
        { withinMs: 4000, explain: victim.log },
      );
      await victim.kill();
      assert.deepEqual(new Set(await Promise.all(answers)), new Set([null]));
      await untilGone(database.db);
      return storedOf(database.db, changes);
    };
    const both = (isThere: boolean): readonly Stored[] =>
      changes.map(({ action }) => ({ action, changed: isThere, recorded: isThere }));

    assert.deepEqual(await killAt('act_recording'), both(false));
    assert.deepEqual(await killAt('act_recorded'), both(false));
    assert.deepEqual(await killAt('act_committed'), both(true));

    assert.equal(await countBlocks(database.db), 0);
    const heir = await start();
    await untilSealed(database.db, heir.log);
    await assertAnchored(database.db, loggedBlocks([heir]));
  });

  it('in the middle of a command or a script leaves both or neither, too', async (t) => {
    const database = await createTestDatabase();
    t.after(() => database.drop());
    const { db, url } = database;
    const keyFile = createMasterKeyFile(newMasterKey('first'));
    const command = spawn(
      process.execPath,
      [fileURLToPath(new URL('../../src/main.ts', import.meta.url)), 'keys', 'rotate', '--reason', 'tested'],
      {
        env: {
          ...childEnv,
          USER: 'hanako',
          DATABASE_URL: url,
          PROTECT_ENCRYPT_TOPICS: 'payments.*',
          PROTECT_ENCRYPT_KEY_FILE: keyFile.path,
        },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    const script = spawn(
      process.execPath,
      [
        '--input-type=module',
        '--eval',
        `import pg from 'pg';
         const client = new pg.Client(process.env.DATABASE_URL);
         await client.connect();
         await client.query("BEGIN; INSERT INTO jobs.queues (queue) VALUES ('by-hand')");
         await client.query("SELECT audit.record('jobs:queues:pause', 'jobs/queues/by-hand', 'tested')");
         await client.query('COMMIT');`,
      ],
      {
        cwd: fileURLToPath(new URL('../..', import.meta.url)),
        env: { ...childEnv, DATABASE_URL: url },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    let said = '';
    for (const { stderr } of [command, script])
      stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
    const ended = [once(command, 'exit'), once(script, 'exit')];
    // Both have made their change, and wait to add the row about it.
    await db.transaction(async (tx) => {
      await tx.query(sql`SET LOCAL idle_in_transaction_session_timeout = '60s'`);
      await tx.query(sql`LOCK TABLE audit.events IN SHARE ROW EXCLUSIVE MODE`);
      await until(
        'both wait',
        async () => {
          const rows = await db.query(sql`
          SELECT 1 FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ 'audit'`);
          return rows.length === 2;
        },
        { withinMs: 30_000, explain: () => said },
      );
      for (const child of [command, script]) child.kill('SIGKILL');
      await Promise.all(ended);
    });
    await untilGone(db);
    const left = await db.query(sql`
      SELECT 'key' FROM platform.data_keys
      UNION ALL SELECT 'queue' FROM jobs.queues WHERE queue = 'by-hand'
      UNION ALL SELECT action FROM audit.events`);
    assert.deepEqual(left, []);
  });
});

describe('With a broker, a process that is killed', { skip: await whyNoKafka() }, () => {
  it('while it retries leaves a started act, which ends as unknown when the attempt does', async (t) => {
    const at = await openScene();
    t.after(() => at.close());
    await at.fail(['message-0']);
    const victim = await at.start({ faults: [{ at: 'published', act: 'kill' }] });
    await at.taken();
    const [row] = await rowsOf(at);
    assert.ok(row);
    assert.equal(await retryOne(row.id, victim), null);
    assert.equal(await victim.died(), 'SIGKILL');
    type Recorded = Readonly<{ outcome: string; operation: string; actor: string; attempt: number | null }>;
    const acts = (): Promise<readonly Recorded[]> =>
      at.db.query<Recorded>(sql`
        SELECT outcome, operation_id AS operation, actor_id AS actor, (detail ->> 'attempt')::int AS attempt
        FROM audit.events WHERE resource = ${`dlq/messages/${row.id}`} ORDER BY seq`);
    const outcomesOf = (events: readonly Recorded[]): readonly string[] =>
      events.map(({ outcome }) => outcome);
    assert.deepEqual(outcomesOf(await acts()), ['started']);

    const heir = await at.start();
    await untilReaped(at);
    const lost = await acts();
    assert.deepEqual(outcomesOf(lost), ['started', 'unknown']);
    assert.deepEqual(lost[1], { ...lost[0], outcome: 'unknown' });
    assert.equal((await retryOne(row.id, heir))?.status, 200);
    const all = await acts();
    assert.deepEqual(outcomesOf(all), ['started', 'unknown', 'started', 'success']);
    assert.equal(all[3]?.operation, all[2]?.operation);
    assert.notEqual(all[2]?.operation, all[0]?.operation);
  });

  it('while it seals, wherever it is, leaves a chain that its heir continues, anchored and logged', async (t) => {
    await sealThroughKills(t);
  });
});

async function sealThroughKills(t: TestContext): Promise<void> {
  const at = await openScene();
  const topic = `${at.originalTopic}.anchors`;
  await at.broker.createTopic(topic, 1);
  t.after(async () => {
    await at.broker.deleteTopic(topic);
    await at.close();
  });
  const env = { ROLES: 'workers', AUDIT_ANCHOR_TOPIC: topic, OUTBOX_STUCK_THRESHOLD_MIN: '0.1' };
  const record = (count: number) =>
    at.db.query(sql`
      SELECT audit.record('jobs:queues:pause', 'jobs/queues/' || n, 'tested') FROM generate_series(1, ${count}) AS n`);
  const replicas: Replica[] = [];
  for (const [point, blocks] of [
    ['seal_stored', 0],
    ['seal_anchored', 0],
    ['seal_committed', 1],
  ] as const) {
    await record(3);
    const victim = await at.start({ faults: [{ at: point, act: 'kill' }] }, env);
    replicas.push(victim);
    assert.equal(await victim.died(), 'SIGKILL');
    await untilGone(at.db);
    assert.equal(await countBlocks(at.db), blocks, point);
    await expireSealLease(at.db);
  }
  await record(3);
  const heir = await at.start(undefined, env);
  replicas.push(heir);
  await untilSealed(at.db, heir.log);
  assert.equal(await countBlocks(at.db), 2);
  await assertAnchored(at.db, loggedBlocks(replicas), await sentAnchors(at, topic));
}
