import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from 'pg';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { runPsqlFile } from '../support/psql-file.ts';
import { runRedrive, startServerProcess } from '../support/redrive-process.ts';

/** A production by deploy/postgres/roles.sql: logins that Vault creates and drops, and an owner that nobody logs in as. */
const vault = fileURLToPath(new URL('../../deploy/vault/', import.meta.url));
const groups = ['redrive_owner', 'redrive_migrator', 'redrive_rw', 'redrive_ro'];
const password = 'only-for-this-test';

type Login = Readonly<{ name: string; url: string }>;

let database: TestDatabase;
let admin: Client;
let migrator: Login;
const logins: Login[] = [];

/** As Vault does by its creation statements. */
async function createLogin(file: string): Promise<Login> {
  const name = `v-kubernet-${file.replace('.sql', '')}-${logins.length}`;
  await admin.query(await statementsOf(file, name));
  const url = new URL(database.url);
  url.username = name;
  url.password = password;
  const login = { name, url: url.href };
  logins.push(login);
  return login;
}

async function statementsOf(file: string, name: string): Promise<string> {
  return (await readFile(`${vault}${file}`, 'utf8'))
    .replaceAll('{{name}}', name)
    .replaceAll('{{password}}', password)
    .replaceAll('{{expiration}}', '2099-01-01 00:00:00+00');
}

async function as<T>(login: Login, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: login.url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

before(async () => {
  database = await createTestDatabase('empty');
  admin = new Client({ connectionString: database.url });
  await admin.connect();
  await admin.query('REVOKE ALL ON SCHEMA public FROM PUBLIC');
  await runPsqlFile(admin, 'postgres/roles.sql');
  // It may be run again.
  await runPsqlFile(admin, 'postgres/roles.sql');
  migrator = await createLogin('migrator.sql');
  const migrated = await runRedrive(['migrate', 'up'], { DATABASE_URL: migrator.url });
  assert.equal(migrated.code, 0, migrated.err);
  await as(migrator, async (client) => {
    await runPsqlFile(client, 'postgres/server.sql', { role: 'redrive_rw' });
    await runPsqlFile(client, 'postgres/read-only.sql', { role: 'redrive_ro' });
  });
});

after(async () => {
  for (const { name } of logins) await admin.query(await statementsOf('revoke.sql', name));
  await admin.query(groups.map((role) => `DROP OWNED BY ${role} CASCADE;`).join('\n'));
  await admin.query(groups.map((role) => `DROP ROLE ${role};`).join('\n'));
  await admin.end();
  await database.drop();
});

describe('with the roles of roles.sql', () => {
  test('no role of a group can log in', async () => {
    const { rows } = await admin.query(
      'SELECT rolname FROM pg_roles WHERE rolname = ANY($1) AND rolcanlogin',
      [groups],
    );
    assert.deepEqual(rows, []);
  });

  test('everything that the migrations made belongs to the owner, and to no login', async () => {
    const { rows } = await admin.query(`
      SELECT DISTINCT pg_get_userbyid(owner) AS owner
      FROM (SELECT nspowner AS owner FROM pg_namespace WHERE nspname IN ('platform', 'dlq', 'outbox', 'jobs', 'saga')
            UNION ALL SELECT relowner FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
            WHERE nspname IN ('platform', 'dlq', 'outbox', 'jobs', 'saga')
            UNION ALL SELECT proowner FROM pg_proc JOIN pg_namespace ON pg_namespace.oid = pronamespace
            WHERE nspname IN ('platform', 'dlq', 'outbox', 'jobs', 'saga')) AS owned`);
    assert.deepEqual(rows, [{ owner: 'redrive_owner' }]);
  });

  test('a server works with a login of redrive_rw, and doctor misses no right', async () => {
    const login = await createLogin('read-write.sql');
    const env = { DATABASE_URL: login.url, DATABASE_MIGRATE: 'false', KAFKA_LOCAL: 'true' };
    const server = await startServerProcess(env);
    const added = await fetch(`${server.url}/api/v1/jobs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ queue: 'mail', payload: { to: 'a@example.com' } }),
    });
    assert.equal(added.status, 202, await added.text());
    const ready = (await (await fetch(`${server.url}/readyz`)).json()) as { status: string };
    assert.equal(ready.status, 'healthy');
    const examined = await runRedrive(['doctor'], env);
    assert.match(examined.out, /^ok +rights /m);
    assert.equal((await server.stop()).code, 0);
  });

  test('a login of redrive_ro reads statuses and counts, but no payload, and changes nothing', async () => {
    const login = await createLogin('read-only.sql');
    await as(login, async (client) => {
      const { rows } = await client.query(
        'SELECT queue, status, count(*)::int FROM jobs.job_queue GROUP BY 1, 2',
      );
      assert.equal(rows.length, 1);
      await client.query('SELECT id, original_topic, status, retry_count FROM dlq.dlq_messages');
      for (const secret of [
        'payload FROM jobs.job_queue',
        'message_key FROM dlq.dlq_messages',
        'error_message FROM jobs.job_queue',
        'raw_value FROM dlq.dlq_messages',
        'headers FROM dlq.dlq_messages',
        'request_json FROM outbox.outbox_orders',
        'payload FROM saga.saga_states',
        'response_payload FROM saga.saga_step_logs',
        'bytes FROM dlq.value_parts',
      ])
        await assert.rejects(client.query(`SELECT ${secret}`), { code: '42501' }, secret);
      await assert.rejects(client.query('DELETE FROM jobs.job_queue'), { code: '25006' });
      await client.query('SET default_transaction_read_only = off');
      await assert.rejects(client.query('DELETE FROM jobs.job_queue'), { code: '42501' });
    });
  });

  test('no column that redrive_ro may read can hold a payload', async () => {
    const { rows } = await admin.query<{ name: string }>(`
      SELECT format('%s.%s', relname, attname) AS name
      FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
      WHERE nspname IN ('platform', 'dlq', 'outbox', 'jobs', 'saga') AND relkind IN ('r', 'p', 'v') AND attnum > 0
        AND has_column_privilege('redrive_ro', attrelid, attnum, 'SELECT')
        AND (attname ~ 'payload|request_json|response|headers|raw|error_(message|stack)|progress|result$|^template$|^state_reason$'
             OR (relname, attname) = ('redrive_items', 'reason')
             OR format_type(atttypid, NULL) IN ('json', 'jsonb', 'bytea'))`);
    assert.deepEqual(rows, []);
  });

  test('a login is dropped when it expires, because it owns nothing', async () => {
    for (const file of ['read-write.sql', 'read-only.sql', 'migrator.sql']) {
      const { name } = await createLogin(file);
      await admin.query(await statementsOf('revoke.sql', name));
      const { rows } = await admin.query('SELECT FROM pg_roles WHERE rolname = $1', [name]);
      assert.equal(rows.length, 0, name);
    }
  });

  test('restore-check.sql accepts a whole database, and names what a mixed one lacks', async () => {
    const failed = async () =>
      (
        (await runPsqlFile(admin, 'postgres/restore-check.sql')) as readonly {
          name: string;
          result: string;
        }[]
      )
        .filter(({ result }) => result !== 'ok')
        .map(({ name }) => name);
    assert.deepEqual(await failed(), []);
    await admin.query("SELECT setval('platform.lease_epochs', 1, false)");
    await admin.query('UPDATE jobs.job_queue SET lease_epoch = 5');
    assert.deepEqual(await failed(), ['lease epochs are below their sequence']);
    await admin.query("SELECT setval('platform.lease_epochs', 100)");
  });
});
