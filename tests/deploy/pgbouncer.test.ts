import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import type { PgBouncer } from '../../tools/pgbouncer/start-pgbouncer.ts';
import { connectTo, type TestDatabase } from '../support/database.ts';
import { runHttpFlows } from '../support/every-flow/http-flows.ts';
import { openOutsideWorld, type OutsideWorld } from '../support/every-flow/outside-world.ts';
import { runRedrive } from '../support/redrive-process.ts';
import { startTestSystem } from '../support/start-system.ts';
import { needsPgBouncer, startTestPgBouncer } from '../support/test-pgbouncer.ts';

const configFile = fileURLToPath(new URL('../../deploy/pgbouncer/pgbouncer.ini', import.meta.url));
/** Its names, and those of userlist.txt. The role owns the database, as in compose.yaml. */
const name = 'k1s0_system';
const role = 'app';
/** More than its default_pool_size. */
const clientCount = 45;

async function asAdmin(...statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: process.env['TEST_POSTGRES_URL'] });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

describe('with deploy/pgbouncer/pgbouncer.ini', needsPgBouncer, () => {
  let pooler: PgBouncer;
  let world: OutsideWorld;
  let database: TestDatabase;
  let isOurs = false;
  let env: Record<string, string>;
  before(async () => {
    await asAdmin(`CREATE ROLE ${role} LOGIN PASSWORD 'app'`, `CREATE DATABASE ${name} OWNER ${role}`);
    isOurs = true;
    const url = new URL(process.env['TEST_POSTGRES_URL'] ?? '');
    Object.assign(url, { username: role, password: 'app', pathname: `/${name}` });
    const db = connectTo(url.href);
    database = { url: url.href, db, drop: () => db.end() };
    pooler = await startTestPgBouncer({ configFile });
    world = await openOutsideWorld();
    env = { DATABASE_URL: pooler.urlOf(url.href), DATABASE_DIRECT_URL: url.href };
  });
  after(async () => {
    await world?.close();
    await pooler?.stop();
    await database?.drop();
    // A role or a database that was there before is not for us to drop.
    if (!isOurs) return;
    await asAdmin(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`, `DROP ROLE ${role}`);
  });

  test('the server is ready, every slice works, and doctor finds nothing', async () => {
    const system = await startTestSystem({ kafka: 'local', database, env: { ...env, ...world.env } });
    try {
      const ready = await system.api.get<{ status: string }>('/readyz');
      assert.deepEqual([ready.status, ready.body.status], [200, 'healthy'], ready.text);
      assert.ok(system.broker);
      await runHttpFlows({ api: system.api, broker: system.broker });
    } finally {
      await system.stop();
    }
    const doctor = await runRedrive(['doctor'], env);
    assert.equal(doctor.code, 0, doctor.out);
    assert.match(doctor.out, /^ok +listen /m);
    assert.doesNotMatch(pooler.log(), /unsupported startup parameter|ERROR|FATAL/);
  });

  test('a client between two transactions holds no connection to the server', async () => {
    const clients = Array.from(
      { length: clientCount },
      () => new Client({ connectionString: env['DATABASE_URL'], query_timeout: 10_000 }),
    );
    try {
      for (const client of clients) {
        await client.connect();
        await client.query('SELECT 1');
      }
    } finally {
      await Promise.all(clients.map((client) => client.end()));
    }
  });

  test('another password is refused', async () => {
    const url = new URL(env['DATABASE_URL'] ?? '');
    url.password = 'wrong';
    await assert.rejects(new Client({ connectionString: url.href }).connect(), /authentication failed/);
  });
});
