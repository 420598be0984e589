import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { sql } from '../../src/platform/postgres/sql.ts';
import { childEnv } from '../support/child-env.ts';
import { createMasterKeyFile, newMasterKey } from '../support/encryption.ts';
import { eventually } from '../support/eventually.ts';
import { deadLetterTo } from '../support/local-dead-letters.ts';
import { runRedrive } from '../support/redrive-process.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { startTransit, type TransitServer } from '../support/transit-server.ts';

/** Keys are rotated while messages are stored, read and sent, and by a command that is killed. */

type Shown = Readonly<{ key: string | null; unreadable?: string }>;
type Status = Readonly<{
  keys: readonly Readonly<{ id: number; purpose: string; wrappedBy: string; trouble: string | null }>[];
}>;

const root = '/api/v1/dlq/messages';
const reason = ['--reason', 'yearly rotation'];

async function keysOf(env: Readonly<Record<string, string>>): Promise<Status['keys']> {
  const { out, err } = await runRedrive(['keys', 'status', '--json'], env);
  assert.notEqual(out, '', err);
  return (JSON.parse(out) as Status).keys;
}

describe('rotation under load', () => {
  const [first, second] = [newMasterKey('first'), newMasterKey('second')];
  const file = createMasterKeyFile(first);
  const protect = { PROTECT_ENCRYPT_TOPICS: 'payments.*', PROTECT_ENCRYPT_KEY_FILE: file.path };
  let system: TestSystem;
  before(async () => void (system = await startTestSystem({ kafka: 'local', env: protect })));
  after(() => system.drop());

  test('of the data key and of the master key fails no request and loses no message', async () => {
    const store = await deadLetterTo(system, ['payments']);
    const env = { DATABASE_URL: system.database.url, ...protect };
    const stopping = new AbortController();
    const failures: string[] = [];
    const ids: string[] = [];
    const load = async (): Promise<void> => {
      for (let n = 0; !stopping.signal.aborted; n += 1) {
        const id = await store('payments', { key: `key-${n}`, value: `{"n":${n}}` });
        ids.push(id);
        const shown = await system.api.get<Shown>(`${root}/${id}`);
        if (shown.body.key !== `key-${n}`) failures.push(`show: ${shown.text}`);
        const retried = await system.api.post(`${root}/${id}/retry`);
        if (retried.status !== 200) failures.push(`retry: ${retried.text}`);
        await sleep(20);
      }
    };
    const running = load();
    await eventually(async () => assert.ok(ids.length > 3));
    const rotated = await runRedrive(['keys', 'rotate', ...reason], env);
    assert.equal(rotated.code, 0, rotated.err);
    file.write(second, first);
    const rewrapped = await runRedrive(['keys', 'rewrap', ...reason], env);
    assert.match(rewrapped.out, /rewrapped 3 data keys; 0 were current/, rewrapped.err);
    file.write(second);
    const before = ids.length;
    await eventually(async () => assert.ok(ids.length > before + 3));
    stopping.abort();
    await running;
    assert.deepEqual(failures, []);

    const keys = await keysOf(env);
    assert.deepEqual(
      keys.map(({ purpose, wrappedBy, trouble }) => [purpose, wrappedBy, trouble]),
      [
        ['payload', 'file:second', null],
        ['lookup', 'file:second', null],
        ['payload', 'file:second', null],
      ],
    );
    // A process that has never seen a key reads everything, and encrypts with the new data key.
    const fresh = await startTestSystem({ kafka: 'local', database: system.database, env: protect });
    try {
      for (const [n, id] of ids.entries()) {
        const { body, text } = await fresh.api.get<Shown>(`${root}/${id}`);
        assert.equal(body.key, `key-${n}`, text);
      }
      const store = await deadLetterTo(fresh, ['payments']);
      const last = await store('payments', { key: 'last', value: '1' });
      const [row] = await system.db.query<{ data_key: number }>(sql`
        SELECT data_key FROM dlq.dlq_messages WHERE id = ${last}`);
      assert.equal(row?.data_key, keys.at(-1)?.id);
    } finally {
      await fresh.stop();
    }
    const acts = await system.db.query<{ action: string; reason: string }>(sql`
      SELECT DISTINCT action, reason FROM audit.events WHERE action LIKE 'system:keys:%' ORDER BY action`);
    assert.deepEqual(acts, [
      { action: 'system:keys:rewrap', reason: 'yearly rotation' },
      { action: 'system:keys:rotate', reason: 'yearly rotation' },
    ]);
  });
});

describe('a master key in Vault', () => {
  const folder = mkdtempSync(join(tmpdir(), 'vault-token-'));
  const tokenFile = join(folder, 'token');
  let vault: TransitServer;
  let system: TestSystem;
  let env: Record<string, string>;
  before(async () => {
    vault = await startTransit({ delayMs: 50 });
    writeFileSync(tokenFile, 'a-token');
    const protect = {
      PROTECT_ENCRYPT_TOPICS: 'payments.*',
      PROTECT_ENCRYPT_VAULT_ADDRESS: vault.url,
      PROTECT_ENCRYPT_VAULT_TOKEN_FILE: tokenFile,
    };
    system = await startTestSystem({ kafka: 'local', env: protect });
    env = { DATABASE_URL: system.database.url, ...protect };
  });
  after(async () => {
    await system.drop();
    await vault.close();
    rmSync(folder, { recursive: true });
  });

  test('is rotated by a rewrap that is killed and repeated', async () => {
    const store = await deadLetterTo(system, ['payments']);
    const id = await store('payments', { key: 'a', value: '1' });
    // Keys of twenty months.
    await system.db.query(sql`
      INSERT INTO platform.data_keys (slice, purpose, month, wrapped)
      SELECT slice, purpose, month - n * interval '1 month', wrapped
      FROM platform.data_keys, generate_series(1, 20) AS n WHERE purpose = 'payload'`);
    vault.rotate();
    const asked = vault.requests.length;
    const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
    const child = spawn(process.execPath, [main, 'keys', 'rewrap', ...reason], {
      env: { ...childEnv, USER: 'hanako', ...env },
      stdio: 'ignore',
    });
    const ended = once(child, 'exit');
    await eventually(async () => assert.ok(vault.requests.length > asked + 8));
    child.kill('SIGKILL');
    await ended;
    const between = await keysOf(env);
    const done = between.filter(({ wrappedBy }) => wrappedBy === 'vault:v2').length;
    assert.ok(done > 0 && done < between.length, `${done} of ${between.length}`);
    assert.ok(between.every(({ trouble }) => trouble === null));
    const audited = await system.db.query(sql`
      SELECT 1 FROM audit.events WHERE action = 'system:keys:rewrap'`);
    assert.equal(audited.length, done);

    const { out, err } = await runRedrive(['keys', 'rewrap', ...reason, '--json'], env);
    const result = JSON.parse(out) as Readonly<{ rewrapped: number[]; current: number[]; failed: unknown[] }>;
    assert.deepEqual([result.rewrapped.length, result.current.length], [between.length - done, done], err);
    vault.setMinDecryptionVersion(2);
    assert.ok(
      (await keysOf(env)).every(({ wrappedBy, trouble }) => wrappedBy === 'vault:v2' && trouble === null),
    );
    assert.equal((await system.api.get<Shown>(`${root}/${id}`)).body.key, 'a');
  });

  test('that is sealed stops neither what is known nor other topics', async () => {
    const store = await deadLetterTo(system, ['payments', 'orders']);
    const id = await store('payments', { key: 'b', value: '1' });
    vault.seal(true);
    try {
      // The keys that this process has used stay usable.
      assert.equal((await system.api.get<Shown>(`${root}/${id}`)).body.key, 'b');
      await store('payments', { key: 'c', value: '1' });
      // A new process has none: what must be encrypted waits, and the rest goes on.
      const fresh = await startTestSystem({
        kafka: 'local',
        database: system.database,
        env: { ...env, KAFKA_CONSUMER_GROUP: 'fresh' },
      });
      try {
        const storeFresh = await deadLetterTo(fresh, ['payments', 'orders']);
        const waiting = storeFresh('payments', { key: 'd', value: '1' });
        await storeFresh('orders', { key: 'e', value: '1' });
        assert.equal(
          (await fresh.api.get<Shown>(`${root}/${id}`)).body.unreadable,
          'SYS_DLQ_KEY_UNAVAILABLE',
        );
        const ready = await fresh.api.get('/readyz');
        assert.equal(ready.status, 200);
        assert.match(ready.text, /dead letters of encrypted topics wait: .*Vault is sealed/);
        const [plain] = await system.db.query<{ count: bigint }>(sql`
          SELECT count(*) AS count FROM dlq.dlq_messages WHERE original_topic = 'payments.v1' AND data_key IS NULL`);
        assert.equal(plain?.count, 0n);
        vault.seal(false);
        await waiting;
      } finally {
        await fresh.stop();
      }
    } finally {
      vault.seal(false);
    }
  });
});
