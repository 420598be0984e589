import assert from 'node:assert/strict';
import { chown, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client } from 'pg';
import { eventually } from '../../tests/support/eventually.ts';
import { loopbackTls } from '../../tests/support/loopback-tls.ts';
import { load } from '../../tests/support/test-config.ts';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../platform/embedded/embedded-postgres.ts';
import { sql } from '../platform/postgres/sql.ts';
import { createLogger } from '../platform/telemetry/logger.ts';
import { openDatabase } from './open-database.ts';

/** Two addresses, of which the certificate of the server has one. */
const listenAddresses = '127.0.0.1,127.0.0.2';

describe('a connection to PostgreSQL', () => {
  let folder: string;
  let ca: string;
  let postgres: EmbeddedPostgres;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'database-tls-'));
    ca = join(folder, 'ca.pem');
    await writeFile(ca, loopbackTls.cert);
    postgres = await startEmbeddedPostgres({
      dataDir: join(folder, 'postgres'),
      settings: { listen_addresses: listenAddresses, fsync: 'off' },
    });
    await offerTls(postgres);
  });
  after(async () => {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  });

  /** Whether the connection that this configuration makes is encrypted. */
  async function isEncrypted(host: string, parameters: string): Promise<boolean> {
    const url = new URL(postgres.url);
    url.hostname = host;
    const { db } = await openDatabase(
      load({ env: { DATABASE_URL: `${url.href}?${parameters}` } }),
      createLogger({ level: 'silent', service: 'test', version: '0', environment: 'test' }),
    );
    try {
      const [row] = await db.query<{ ssl: boolean }>(
        sql`SELECT ssl FROM pg_catalog.pg_stat_ssl WHERE pid = pg_catalog.pg_backend_pid()`,
      );
      return row?.ssl === true;
    } finally {
      await db.end();
    }
  }

  test('is plain with disable, and encrypted with require, whoever has signed the certificate', async () => {
    assert.equal(await isEncrypted('127.0.0.1', 'sslmode=disable'), false);
    assert.equal(await isEncrypted('127.0.0.1', 'sslmode=require'), true);
  });

  test('with verify-ca needs a certificate of a known authority, for any name', async () => {
    await assert.rejects(isEncrypted('127.0.0.1', 'sslmode=verify-ca'), {
      code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    });
    assert.equal(await isEncrypted('127.0.0.2', `sslmode=verify-ca&sslrootcert=${ca}`), true);
  });

  test('with require and a file of authorities verifies the certificate too, as psql does', async () => {
    const wrong = join(folder, 'wrong.pem');
    await writeFile(wrong, '');
    await assert.rejects(isEncrypted('127.0.0.1', `sslmode=require&sslrootcert=${wrong}`));
    assert.equal(await isEncrypted('127.0.0.2', `sslmode=require&sslrootcert=${ca}`), true);
  });

  test('with verify-full needs the name of the host in the certificate too', async () => {
    const parameters = `sslmode=verify-full&sslrootcert=${ca}`;
    assert.equal(await isEncrypted('127.0.0.1', parameters), true);
    await assert.rejects(isEncrypted('127.0.0.2', parameters), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });
});

/** A running server reads its certificate when it reloads its configuration, some time after it was told to. */
async function offerTls({ url }: EmbeddedPostgres): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ data_directory: string }>('SHOW data_directory');
  const data = rows[0]?.data_directory ?? '';
  const { uid, gid } = await stat(data);
  for (const [name, text] of [
    ['server.crt', loopbackTls.cert],
    ['server.key', loopbackTls.key],
  ] as const) {
    await writeFile(join(data, name), text, { mode: 0o600 });
    await chown(join(data, name), uid, gid);
  }
  await client.query('ALTER SYSTEM SET ssl = on');
  await client.query('SELECT pg_reload_conf()');
  await client.end();
  await eventually(async () => {
    const encrypted = new Client({ connectionString: url, ssl: { rejectUnauthorized: false } });
    await encrypted.connect();
    await encrypted.end();
  });
}
