import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { PassThrough, Transform } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { needsKafka, openTestKafka, type TestKafka } from '../../../tests/support/test-kafka.ts';
import { kafkaForTests, type SharedKafka } from '../../../tools/kafka/kafka-for-tests.ts';
import { plainUser } from '../../../tools/kafka/start-kafka.ts';
import { Sql, sql } from '../../platform/postgres/sql.ts';
import { runCli } from '../run-cli.ts';
import type { Finding } from './finding.ts';

type Report = Readonly<{ code: number; status: string; of: (check: string) => Finding }>;

async function examine(env: NodeJS.ProcessEnv): Promise<Report> {
  let out = '';
  const stdout = { write: (data: string | Uint8Array): void => void (out += data.toString()) };
  const terminal = { env, stdin: new PassThrough(), stdout, stderr: stdout };
  const code = await runCli(['doctor', '--json'], terminal);
  const { status, checks } = JSON.parse(out) as { status: string; checks: readonly Finding[] };
  const of = (name: string): Finding => {
    const found = checks.find(({ check }) => check === name);
    assert.ok(found, `no check ${name} in ${out}`);
    return found;
  };
  return { code, status, of };
}

function withUrl(url: string, change: (url: URL) => void): NodeJS.ProcessEnv {
  const changed = new URL(url);
  change(changed);
  return { DATABASE_URL: changed.href };
}

describe('redrive doctor on a database', () => {
  let migrated: TestDatabase;
  let empty: TestDatabase;
  before(async () => {
    migrated = await createTestDatabase();
    empty = await createTestDatabase('empty');
  });
  after(async () => {
    await migrated.drop();
    await empty.drop();
  });

  it('reports ok for a healthy database', async () => {
    const { code, status, of } = await examine({ DATABASE_URL: migrated.url });
    assert.deepEqual([code, status], [0, 'ok']);
    for (const check of ['database', 'version', 'clock', 'migrations', 'rights', 'listen'])
      assert.equal(of(check).status, 'ok', check);
    assert.match(of('kafka').found, /^disabled: /);
  });

  it('reports pending migrations without applying them', async () => {
    const { code, of } = await examine({ DATABASE_URL: empty.url });
    assert.equal(code, 1);
    assert.equal(of('migrations').status, 'warning');
    assert.match(of('migrations').advice ?? '', /redrive migrate up/);
    assert.deepEqual(
      [of('rights').status, of('rights').found],
      ['skipped', 'not checked: the schema does not exist yet'],
    );
    const verified = await examine({ DATABASE_URL: empty.url, DATABASE_MIGRATE: 'false' });
    assert.deepEqual([verified.code, verified.of('migrations').status], [2, 'problem']);
    const rows = await empty.db.query<{ count: bigint }>(sql`
      SELECT count(*) AS count FROM pg_namespace WHERE nspname IN ('platform', 'dlq')`);
    assert.equal(rows[0]?.count, 0n);
  });

  it('explains why connecting to the database fails', async () => {
    const wrong: readonly (readonly [NodeJS.ProcessEnv, RegExp])[] = [
      [withUrl(migrated.url, (url) => (url.password = 'wrong')), /wrong password/],
      [withUrl(migrated.url, (url) => (url.pathname = '/nowhere')), /database nowhere does not exist/],
      [withUrl(migrated.url, (url) => (url.port = '1')), /nothing listens at 127\.0\.0\.1:1/],
      [withUrl(migrated.url, (url) => (url.search = 'sslmode=require')), /does not support TLS/],
    ];
    for (const [env, found] of wrong) {
      const { code, of } = await examine(env);
      assert.equal(code, 2);
      assert.equal(of('database').status, 'problem');
      assert.match(of('database').found, found);
    }
  });

  it('lists the tables that the user cannot write to', async () => {
    const role = `reader_${randomBytes(4).toString('hex')}`;
    const run = (statement: string): Promise<unknown> => migrated.db.query(new Sql([statement], []));
    await run(`CREATE ROLE ${role} LOGIN PASSWORD 'reader'`);
    await run(`GRANT USAGE ON SCHEMA platform, dlq TO ${role}`);
    await run(`GRANT SELECT ON ALL TABLES IN SCHEMA platform, dlq TO ${role}`);
    try {
      const env = withUrl(migrated.url, (url) => {
        url.username = role;
        url.password = 'reader';
      });
      const { code, of } = await examine(env);
      assert.equal(code, 2);
      assert.match(of('rights').found, /the role lacks .*INSERT, UPDATE, DELETE on dlq\.arrivals; /);
      assert.match(of('rights').advice ?? '', /GRANT INSERT, UPDATE, DELETE ON dlq\.arrivals TO reader_/);
      assert.match(of('rights').advice ?? '', /GRANT USAGE ON SEQUENCE platform\.lease_epochs TO reader_/);
      assert.match(of('rights').advice ?? '', /GRANT USAGE ON SCHEMA jobs TO reader_/);
      assert.match(
        of('rights').advice ?? '',
        /GRANT EXECUTE ON FUNCTION outbox\.make_audit_months\(\) TO reader_/,
      );
      assert.equal(of('migrations').status, 'ok');
    } finally {
      await run(`DROP OWNED BY ${role}`);
      await run(`DROP ROLE ${role}`);
    }
  });

  it('warns if notifications do not arrive, as behind a pooler in transaction mode', async () => {
    const pooler = await startDeafPooler(migrated.url);
    try {
      const { code, of } = await examine({ DATABASE_URL: pooler.url });
      assert.equal(code, 1);
      assert.equal(of('listen').status, 'warning');
      assert.match(of('listen').advice ?? '', /database\.direct_url .*or set database\.wake to poll/);
      const direct = await examine({ DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: migrated.url });
      assert.equal(direct.of('listen').status, 'ok');
      const polling = await examine({ DATABASE_URL: pooler.url, DATABASE_WAKE: 'poll' });
      assert.equal(polling.of('listen').status, 'skipped');
    } finally {
      pooler.stop();
    }
  });
});

describe('redrive doctor on Kafka', needsKafka, () => {
  let kafka: TestKafka;
  let shared: SharedKafka;
  before(async () => {
    kafka = openTestKafka();
    shared = await kafkaForTests();
  });
  after(() => kafka.close());

  const asUser = (password: string): NodeJS.ProcessEnv => ({
    ...kafka.env,
    KAFKA_BROKERS: shared.saslBrokers,
    KAFKA_SECURITY_PROTOCOL: 'SASL_PLAINTEXT',
    KAFKA_SASL_MECHANISM: plainUser.mechanism,
    KAFKA_SASL_USERNAME: plainUser.username,
    KAFKA_SASL_PASSWORD: password,
  });

  it('warns if no topic matches, and lists matching topics', async () => {
    const env = { ...kafka.env, KAFKA_BROKERS: shared.brokers };
    const before = await examine(env);
    assert.deepEqual([before.code, before.of('topics').status], [1, 'warning']);
    assert.equal(before.of('group').status, 'skipped');
    const topic = await kafka.createTopic('orders.dlq.v1', 2);
    const { code, of } = await examine(env);
    assert.equal(code, 1);
    assert.match(of('kafka').found, /cluster \S+$/);
    assert.ok(of('topics').found.includes(`${topic} (2)`));
    assert.match(of('group').found, /0 of 2 partitions have a committed offset/);
    assert.match(of('publishing').found, /^redrive\.saga\.state_changed\.v1 does not exist$/);
    assert.equal(of('topic_ids').status, 'skipped');
  });

  it('reports an unreachable broker', async () => {
    const { code, of } = await examine({ KAFKA_BROKERS: '127.0.0.1:1' });
    assert.equal(code, 2);
    assert.match(of('kafka').found, /^127\.0\.0\.1:1: the broker cannot be reached/);
  });

  it('reports a wrong SASL password', async (context) => {
    if (shared.saslBrokers === undefined) return context.skip('this Kafka has no SASL listener');
    const { code, of } = await examine(asUser('wrong'));
    assert.equal(code, 2);
    assert.match(of('kafka').found, /refused the credentials/);
    assert.match(of('kafka').advice ?? '', /kafka\.sasl\.password/);
  });

  it('lists the topics that the user can describe but not read', async (context) => {
    if (shared.saslBrokers === undefined) return context.skip('this Kafka has no SASL listener');
    const topic = await kafka.createTopic('denied.dlq');
    const acl = ['--bootstrap-server', shared.brokers, '--add', '--topic', topic];
    const rights = ['--allow-principal', `User:${plainUser.username}`, '--operation', 'Describe'];
    const tool = await shared.javaTool('org.apache.kafka.tools.AclCommand', [...acl, ...rights]);
    assert.equal(tool.code, 0, tool.stderr);
    const { code, of } = await examine(asUser(plainUser.password));
    assert.equal(code, 2);
    assert.match(of('topics').found, /denied\.dlq\/0 TOPIC_AUTHORIZATION_FAILED/);
    assert.match(of('topics').advice ?? '', /permission to DESCRIBE and READ/);
  });
});

describe('redrive doctor on a configuration', () => {
  it('reports configuration errors and stops there', async () => {
    const { code, of } = await examine({ SERVER_PORT: 'abc', DATABASE_URL: 'postgres://x@127.0.0.1:1/x' });
    assert.equal(code, 78, 'the exit code of serve');
    assert.match(of('configuration').found, /^server\.port: .*\(SERVER_PORT\)$/);
    assert.throws(() => of('database'));
  });

  it('does not open the embedded database', async () => {
    const { code, of } = await examine({});
    assert.equal(code, 0);
    assert.equal(of('database').status, 'skipped');
    assert.match(of('database').found, /embedded PostgreSQL/);
  });
});

/** Forwards everything but notifications, like a pooler in transaction mode. */
async function startDeafPooler(url: string): Promise<Readonly<{ url: string; stop(): void }>> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<ReturnType<typeof connect>>();
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => [client, upstream].forEach((one) => one.destroy()));
    }
    client.pipe(upstream);
    upstream.pipe(withoutNotifications()).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const pooled = new URL(url);
  pooled.port = String((server.address() as AddressInfo).port);
  return {
    url: pooled.href,
    stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** A server message is a letter, the length of the rest, and the rest; `A` is a notification. */
function withoutNotifications(): Transform {
  let rest = Buffer.alloc(0);
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      rest = Buffer.concat([rest, chunk]);
      while (rest.length >= 5 && rest.length > rest.readInt32BE(1)) {
        const end = 1 + rest.readInt32BE(1);
        if (rest[0] !== 'A'.charCodeAt(0)) this.push(rest.subarray(0, end));
        rest = rest.subarray(end);
      }
      done();
    },
  });
}
