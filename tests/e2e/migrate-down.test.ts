import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { runCli } from '../../src/cli/run-cli.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { runRedrive, startServerProcess, type Ended } from '../support/redrive-process.ts';
import { startTestSystem } from '../support/start-system.ts';
import { arrivedMessages } from '../support/stored-message.ts';
import { needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';
import { databaseEnv } from '../support/pooler.ts';

describe('migrate down', () => {
  let database: TestDatabase;
  before(async () => {
    database = await createTestDatabase();
    await database.db.query(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message)
      SELECT 'orders.v1', 'boom' FROM generate_series(1, 3)`);
  });
  after(() => database.drop());

  const messages = async (): Promise<bigint | undefined> => {
    const rows = await database.db.query<{ count: bigint }>(
      sql`SELECT count(*) AS count FROM dlq.dlq_messages`,
    );
    return rows[0]?.count;
  };

  /** At a terminal where somebody types `answer`. */
  const atTerminal = async (answer: string, ...args: readonly string[]): Promise<Ended> => {
    const texts = { out: '', err: '' };
    const stdin = Object.assign(new PassThrough(), { isTTY: true });
    stdin.end(answer);
    const code = await runCli(args, {
      env: { ...databaseEnv(database.url) },
      stdin,
      stdout: { write: (data) => void (texts.out += data.toString()) },
      stderr: { write: (data) => void (texts.err += data.toString()) },
    });
    return { code, ...texts };
  };

  test('off a terminal it changes and locks nothing without --yes', async () => {
    const refused = await database.db.transaction(async (tx) => {
      // The command may take longer to start than a session may idle in a transaction.
      await tx.query(sql`SET LOCAL idle_in_transaction_session_timeout = 0`);
      await tx.query(sql`LOCK TABLE dlq.dlq_messages`);
      return runRedrive(['migrate', 'down', 'dlq', '--to', '0'], { ...databaseEnv(database.url) });
    });
    assert.deepEqual([refused.code, refused.out], [2, '']);
    assert.match(refused.err, /not interactive; pass --yes to confirm/);
    assert.equal(await messages(), 3n);
    const status = await runRedrive(['migrate', 'status'], { ...databaseEnv(database.url) });
    assert.equal(status.code, 0);
  });

  test('at a terminal it asks, and anything but yes is a no', async () => {
    for (const answer of ['n\n', '\n', '']) {
      const { code, err } = await atTerminal(answer, 'migrate', 'down', 'dlq', '--to', '0');
      assert.equal(code, 1);
      assert.match(
        err,
        /^rolling back \d+ migrations \(dlq\/\d+ .*dlq\/001 create_schema\) deletes for good:$/m,
      );
      assert.match(err, /^ {2}dlq\.dlq_messages: 3 rows$[^]*nothing was changed/m);
    }
    assert.equal(await messages(), 3n);
  });

  test('a rollback of some migrations names the columns that go', async () => {
    const { err } = await atTerminal('n\n', 'migrate', 'down', 'dlq', '--to', '3');
    assert.match(err, /^ {2}dlq\.dlq_messages: source_topic, .*lease_lost.* of 3 rows$/m);
  });

  test('a rollback names the rows that it changes in tables that stay', async () => {
    await database.db.query(sql`
      INSERT INTO dlq.source_partitions
        (cluster_id, topic, topic_id, partition, first_offset, next_offset, high_offset)
      SELECT 'c', 'orders.dlq.v1', gen_random_uuid(), n, 0, 0, 0 FROM generate_series(1, 2) AS n`);
    const { err } = await atTerminal('n\n', 'migrate', 'down', 'dlq', '--to', '7');
    assert.match(err, /^rolling back \d+ migrations .* deletes or changes for good:$/m);
    assert.match(err, /^ {2}dlq\.source_partitions: 2 rows changed$/m);
  });

  test('a yes rolls back', async () => {
    const { code, out } = await atTerminal('y\n', 'migrate', 'down', 'dlq', '--to', '0');
    assert.equal(code, 0);
    assert.match(out, /rolled back dlq\/001 create_schema\n$/);
    const { out: again } = await atTerminal('y\n', 'migrate', 'down', 'dlq', '--to', '0');
    assert.equal(again, 'nothing to roll back\n');
  });
});

describe('a rollback and a new start', needsKafka, () => {
  let kafka: TestKafka;
  let database: TestDatabase;
  before(async () => {
    kafka = openTestKafka();
    database = await createTestDatabase();
  });
  after(async () => {
    await database.drop();
    await kafka.close();
  });

  test('after down and up, records that were read before are not read again', async () => {
    const topic = await kafka.createTopic('orders.v1');
    const dlq = await kafka.createTopic('orders.dlq.v1');
    for (const n of [1, 2, 3]) await kafka.publish({ topic: dlq, value: `{"n":${n}}` });
    const first = await startTestSystem({ kafka: 'real', env: kafka.env, database });
    await arrivedMessages(first.api, topic, 3);
    await first.stop();

    const env = { ...databaseEnv(database.url) };
    assert.equal((await runRedrive(['migrate', 'down', 'dlq', '--to', '0', '--yes'], env)).code, 0);
    assert.equal((await runRedrive(['migrate', 'up'], env)).code, 0);
    await kafka.publish({ topic: dlq, value: '{"n":4}' });
    const second = await startTestSystem({ kafka: 'real', env: kafka.env, database });
    try {
      const [message] = await arrivedMessages(second.api, topic, 1);
      assert.equal(message?.status, 'PENDING');
      const { body } = await second.api.get<{ balanced: boolean }>('/api/v1/dlq/accounting');
      assert.equal(body.balanced, true);
      const rows = await database.db.query<{ payload: unknown }>(sql`SELECT payload FROM dlq.dlq_messages`);
      assert.deepEqual(
        rows.map(({ payload }) => payload),
        [{ n: 4 }],
      );
    } finally {
      await second.stop();
    }
  });
});

describe('the embedded database of a running server', () => {
  let dataDir: string;
  before(async () => void (dataDir = await mkdtemp(join(tmpdir(), 'redrive-running-'))));
  after(() => rm(dataDir, { recursive: true, force: true }));

  test('migrate status reads it meanwhile, and a second server is refused', async () => {
    const server = await startServerProcess({}, { args: ['serve', '--port', '0', '--data-dir', dataDir] });
    try {
      const status = await runRedrive(['migrate', 'status', '--data-dir', dataDir]);
      assert.deepEqual([status.code, status.err], [0, '']);
      assert.match(status.out, /^applied +dlq\/001 create_schema/m);
      const second = await runRedrive(['serve', '--port', '0', '--data-dir', dataDir]);
      assert.equal(second.code, 1);
      assert.match(second.err, /in use by another Redrive/);
      await eventually(async () => assert.equal((await fetch(`${server.url}/readyz`)).status, 200));
    } finally {
      assert.equal((await server.stop()).code, 0);
    }
  });
});
