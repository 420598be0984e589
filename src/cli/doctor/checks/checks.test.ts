import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { createMasterKeyFile } from '../../../../tests/support/encryption.ts';
import { load } from '../../../../tests/support/test-config.ts';
import type { Config } from '../../../config/config.ts';
import type { Finding } from '../finding.ts';
import { judgeDeadRows } from './dead-rows.ts';
import { judgeDisk } from './disk.ts';
import { examineEncryption } from './encryption.ts';
import { examinePlainSecrets } from './plain-secrets.ts';
import { examineSecretFiles } from './secret-files.ts';
import { judgeFamily } from './server-family.ts';
import { examineTargets, expiryOf } from './targets.ts';

const noRules = { rules: [], patterns: {}, hashKey: null };

function assertFinding({ status, found, advice }: Finding, expected: Finding['status'], text: RegExp): void {
  assert.match(`${status}: ${found} -> ${advice ?? ''}`, text);
  assert.equal(status, expected);
}

test('CockroachDB is refused, YugabyteDB needs polling, PostgreSQL is ok', () => {
  assertFinding(judgeFamily('CockroachDB CCL v24.1', 'listen'), 'problem', /advisory locks/);
  assertFinding(judgeFamily('PostgreSQL 15.2-YB-2.25.0.0', 'listen'), 'warning', /database\.wake to poll/);
  assertFinding(judgeFamily('PostgreSQL 15.2-YB-2.25.0.0', 'poll'), 'ok', /YugabyteDB/);
  assertFinding(judgeFamily('PostgreSQL 17.10 on x86_64-pc-linux-gnu', 'listen'), 'ok', /PostgreSQL/);
});

test('more dead rows than live ones are a warning, a few or fewer are not', () => {
  const table = { name: 'jobs.job_queue', live: 60_000, dead: 59_000 };
  assertFinding(judgeDeadRows([table]), 'ok', /keeps up/);
  assertFinding(judgeDeadRows([{ ...table, dead: 61_000 }]), 'warning', /VACUUM jobs\.job_queue;/);
  assertFinding(judgeDeadRows([{ ...table, live: 0, dead: 50_000 }]), 'ok', /keeps up/);
});

test('a nearly full disk is a warning, one with less than 1 GiB a problem', () => {
  assertFinding(judgeDisk(20 * 1024 ** 3, 'x'), 'ok', /20\.0 GiB/);
  assertFinding(judgeDisk(4 * 1024 ** 3, 'x'), 'warning', /4\.0 GiB/);
  assertFinding(judgeDisk(1024 ** 2, 'x'), 'problem', /0\.0 GiB/);
});

const yamlOf = (text: string): Config => load({ files: { 'config.yaml': text } });

test('a connection without TLS is a problem in production, unless it is local', () => {
  const config = (host: string, more = ''): Config =>
    yamlOf(`app: {environment: prod}\nauth: {mode: none}\ndatabase: {host: ${host}${more}}\n`);
  assertFinding(examineEncryption(config('db.example.com')), 'problem', /database\.ssl_mode to verify-full/);
  assertFinding(examineEncryption(config('db.example.com', ', ssl_mode: require')), 'ok', /TLS/);
  assertFinding(examineEncryption(config('127.0.0.1')), 'ok', /TLS/);
  assertFinding(examineEncryption(yamlOf('database: {host: db}')), 'ok', /not required in dev/);
  const kafka = yamlOf(
    'app: {environment: prod}\nauth: {mode: none}\nkafka: {brokers: ["k.example.com:9092"]}\n',
  );
  assertFinding(examineEncryption(kafka), 'problem', /kafka\.security_protocol/);
});

test('a secret in a configuration file is a warning that does not repeat it', () => {
  const written = yamlOf('database: {host: db, password: hunter2}');
  assertFinding(examinePlainSecrets(written), 'warning', /database\.password \(.*config\.yaml/);
  assert.ok(!JSON.stringify(examinePlainSecrets(written)).includes('hunter2'));
  assertFinding(examinePlainSecrets(yamlOf('database: {host: db, password: ""}')), 'ok', /none/);
  assertFinding(
    examinePlainSecrets(yamlOf('database: {url: "postgres://me:pw@db/x"}')),
    'warning',
    /database\.url/,
  );
  assertFinding(examinePlainSecrets(yamlOf('database: {url: "postgres://me@db/x"}')), 'ok', /none/);
});

test('a secret file that others can read is a warning, also with a path relative to the working directory', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'secret-files-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = relative(process.cwd(), join(folder, 'password.yaml'));
  writeFileSync(file, 'x');
  const config = load({ env: { DATABASE_HOST: 'db' } });
  const used = load({ env: { DATABASE_HOST: 'db', DATABASE_PASSWORD_FILE: file } });
  for (const [mode, status] of [
    [0o400, 'ok'],
    [0o640, 'ok'],
    [0o644, 'warning'],
    [0o660, 'warning'],
  ] as const) {
    chmodSync(file, mode);
    assertFinding(examineSecretFiles(used), status, mode === 0o644 ? /has mode 0644/ : /./);
  }
  assertFinding(examineSecretFiles(config), 'skipped', /none/);
  const { path } = createMasterKeyFile();
  chmodSync(path, 0o644);
  const protect = { ...noRules, encrypt: { topics: [], masterKey: { in: 'file' as const, file: path } } };
  assertFinding(examineSecretFiles({ ...config, protect }), 'warning', /master-keys has mode 0644/);
});

test('a receiver that does not listen, or whose name is unknown, is a problem', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const config = (url: string): Config =>
    load({
      env: { OUTBOX_DESTINATIONS: JSON.stringify({ broker: { type: 'http', idempotency: 'none', url } }) },
    });
  assertFinding(await examineTargets(config(`http://127.0.0.1:${port}/x`)), 'ok', /1 reachable/);
  assertFinding(
    await examineTargets(config('http://127.0.0.1:1/x')),
    'problem',
    /broker: 127\.0\.0\.1:1: .*ECONNREFUSED/,
  );
  assertFinding(
    await examineTargets(config('http://no-such-host.invalid/x')),
    'problem',
    /no-such-host\.invalid/,
  );
  assertFinding(await examineTargets(load({})), 'skipped', /none/);
});

test('a certificate that ends within three weeks is reported', () => {
  const now = new Date('2026-11-01T00:00:00Z');
  assert.equal(expiryOf(new Date('2026-12-01T00:00:00Z'), now), null);
  assert.match(
    expiryOf(new Date('2026-11-11T00:00:00Z'), now)?.text ?? '',
    /expires in 10 days \(2026-11-11\)/,
  );
});
