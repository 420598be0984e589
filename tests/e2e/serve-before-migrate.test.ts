import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { migrateDown, migrationStatus } from '../../src/platform/postgres/migrate.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, createApiClient, type ApiClient } from '../support/api-client.ts';
import { createTestDatabase, migrationSources, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { audience, startIssuer } from '../support/issuer.ts';
import { runRedrive, startServerProcess, type ServerProcess } from '../support/redrive-process.ts';

/** A server with `database.migrate: false` that starts before somebody has applied its migrations. */
type Readiness = Readonly<{ status: string; checks: Record<string, { status: string; message?: string }> }>;

const startUnready = (database: TestDatabase, more = {}): Promise<ServerProcess> =>
  startServerProcess(
    { DATABASE_URL: database.url, DATABASE_MIGRATE: 'false', KAFKA_LOCAL: 'true', ...more },
    { upTo: 'waiting for migrations' },
  );

describe('on an empty database', () => {
  let database: TestDatabase;
  let server: ServerProcess;
  let api: ApiClient;
  before(async () => {
    database = await createTestDatabase('empty');
    server = await startUnready(database);
    api = createApiClient(server.url);
  });
  after(async () => {
    await server?.stop();
    await database.drop();
  });

  test('the server is alive but not ready, and says which migrations it needs', async () => {
    const alive = await api.get('/healthz');
    assert.deepEqual([alive.status, alive.body], [200, { status: 'ok' }]);
    const { status, body } = await api.get<Readiness>('/readyz');
    assert.deepEqual([status, body.status], [503, 'unhealthy']);
    assert.equal(body.checks['schema']?.status, 'unhealthy');
    assert.match(body.checks['schema'].message ?? '', /needs .*jobs \d+ \(has none\).*`redrive migrate up`/);
    assert.equal(body.checks['database']?.status, 'healthy');
    const other = Object.entries(body.checks).filter(([name]) => !/^(schema|database.*)$/.test(name));
    assert.ok(
      other.every(([, { message }]) => message === 'waits for migrations'),
      JSON.stringify(other),
    );
  });

  test('requests get 503 with Retry-After, and the pages of the process answer', async () => {
    for (const path of ['/dlq', '/outbox/orders', '/jobs/queues', '/sagas', '/workflows']) {
      const answer = await api.get(`/api/v1${path}`);
      const { message } = assertError(answer, 503, 'SYS_PLATFORM_SCHEMA_OUTDATED');
      assert.match(message, /needs .*`redrive migrate up`/);
      assert.equal(answer.headers.get('retry-after'), '5');
    }
    assertError(await api.get('/api/v1/nothing'), 404);
    for (const path of ['/metrics', '/openapi.json', '/docs/'])
      assert.equal((await api.get(path)).status, 200);
  });

  test('it becomes ready by itself after `redrive migrate up`, and works', async () => {
    const migrated = await runRedrive(['migrate', 'up'], { DATABASE_URL: database.url });
    assert.equal(migrated.code, 0, migrated.err);
    await eventually(async () => assert.equal((await api.get('/readyz')).status, 200));
    const { body } = await api.get<Readiness>('/readyz');
    assert.ok(
      Object.values(body.checks).every(({ status }) => status === 'healthy'),
      JSON.stringify(body),
    );
    assert.equal((await api.post('/api/v1/jobs', { queue: 'mail', payload: { n: 1 } })).status, 202);
    const claimed = await api.post<{ jobs: readonly unknown[] }>('/api/v1/jobs/queues/mail/claim', {
      worker: 'w1',
    });
    assert.equal(claimed.body.jobs.length, 1, claimed.text);
    assert.equal((await database.db.query(sql`SELECT FROM platform.replicas`)).length, 1);
    assert.match((await api.get('/metrics')).text, /^schema_version\{schema="jobs"\} [1-9]/m);
    const said = server.log().map(({ msg }) => msg);
    assert.equal(said.filter((msg) => msg === 'waiting for migrations').length, 1);
    assert.equal(said.filter((msg) => msg === 'redrive is ready').length, 1);
    const { code } = await server.stop();
    assert.equal(code, 0);
  });
});

test('a server that misses one migration starts no worker, and SIGTERM ends it with 0', async (t) => {
  const database = await createTestDatabase();
  t.after(() => database.drop());
  const status = await migrationStatus(database.db, migrationSources);
  const latest = Math.max(...status.filter(({ slice }) => slice === 'jobs').map(({ number }) => number));
  await migrateDown(database.db, migrationSources, { slice: 'jobs', to: latest - 1 });
  const server = await startUnready(database);
  t.after(() => server.stop());
  const { body } = await createApiClient(server.url).get<Readiness>('/readyz');
  assert.match(
    body.checks['schema']?.message ?? '',
    new RegExp(`needs jobs ${latest} \\(has ${latest - 1}\\);`),
  );
  const traces = sql`SELECT name FROM platform.leases UNION ALL SELECT replica_id FROM platform.replicas`;
  assert.deepEqual(await database.db.query(traces), []);
  const { code } = await server.stop();
  assert.equal(code, 0);
  assert.equal(server.log().at(-1)?.msg, 'stopped');
});

test('a caller with a token or an API key is told that migrations are missing', async () => {
  const database = await createTestDatabase('empty');
  const issuer = await startIssuer();
  const auth = {
    AUTH_JWT_ISSUER: issuer.url,
    AUTH_JWT_AUDIENCE: audience,
    AUTH_API_KEYS_ENABLED: 'true',
  };
  const server = await startUnready(database, auth);
  try {
    for (const token of [await issuer.sign(), `rdk_aaaaaaaa_${'a'.repeat(43)}`]) {
      const api = createApiClient(server.url, { authorization: `Bearer ${token}` });
      assertError(await api.get('/api/v1/jobs'), 503, 'SYS_PLATFORM_SCHEMA_OUTDATED');
    }
  } finally {
    await server.stop();
    await issuer.stop();
    await database.drop();
  }
});
