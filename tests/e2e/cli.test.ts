import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text, buffer } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { sql } from '../../src/platform/postgres/sql.ts';
import { childEnv } from '../support/child-env.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { databaseEnv } from '../support/pooler.ts';

/**
 * The command line as a person has it: every command is a process of its own, talking to a server that is
 * another one.
 */
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

type Server = Readonly<{ url: string; stop(): Promise<number | null> }>;
type Ended = Readonly<{ code: number | null; out: string; bytes: Buffer; err: string }>;

let database: TestDatabase;
let server: Server;
let serverWithoutKafka: Server;

before(async () => {
  database = await createTestDatabase();
  server = await startServer({ KAFKA_LOCAL: 'true' });
  serverWithoutKafka = await startServer({});
});
after(async () => {
  await server.stop();
  await serverWithoutKafka.stop();
  await database.drop();
});

/** Of this process's environment only what a program needs to run: the test run's own settings stay out. */
function environment(env: Readonly<Record<string, string>>): Record<string, string> {
  return { ...childEnv, USER: 'hanako', ...databaseEnv(database.url), ...env };
}

async function startServer(env: Readonly<Record<string, string>>): Promise<Server> {
  const child = spawn(process.execPath, [main, 'serve', '--port', '0'], {
    env: environment(env),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit') as Promise<[number | null]>;
  for await (const line of createInterface({ input: child.stdout })) {
    const { msg, url } = JSON.parse(line) as { msg: string; url?: string };
    if (msg !== 'redrive is ready' || url === undefined) continue;
    child.stdout.resume();
    return {
      url,
      async stop() {
        child.kill('SIGTERM');
        return (await ended)[0];
      },
    };
  }
  throw new Error('the server did not start');
}

async function redrive(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  const child = spawn(process.execPath, [main, ...args], {
    env: environment({ REDRIVE_URL: server.url, ...env }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [bytes, err, [code]] = await Promise.all([
    buffer(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, out: bytes.toString(), bytes, err };
}

/** Everything went well and nothing was said beside the result. */
async function ok(...args: readonly string[]): Promise<string> {
  const { code, out, err } = await redrive(args);
  assert.deepEqual([code, err], [0, '']);
  return out;
}

type Row = Readonly<{
  topic: string;
  error?: string;
  payload?: string | null;
  status?: string;
  retries?: number;
  daysOld?: number;
}>;

async function insert({ topic, error = 'boom', payload = '{}', ...row }: Row): Promise<string> {
  const { status = 'PENDING', retries = 0, daysOld = 0 } = row;
  const rows = await database.db.query<{ id: string }>(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, payload, status, retry_count, created_at, updated_at)
    VALUES (${topic}, ${error}, ${payload}::jsonb, ${status}, ${retries},
            NOW() - ${daysOld} * INTERVAL '1 day', NOW() - ${daysOld} * INTERVAL '1 day')
    RETURNING id`);
  const id = rows[0]?.id;
  assert.ok(id);
  return id;
}

test('topics and list print tables and JSON', async () => {
  const id = await insert({ topic: 'list.v1', error: '接続に失敗\u001b[31m', daysOld: 3 });
  await insert({ topic: 'list.v1', status: 'DEAD', retries: 3 });
  assert.match(await ok('dlq', 'topics'), /^list\.v1 +1 +0 +0 +1 +2 +3d ago/m);

  const all = await redrive(['dlq', 'list', 'list.v1']);
  assert.equal(all.err, '2 of 2 messages\n');
  const [titles, , line] = all.out.split('\n');
  assert.match(titles ?? '', /^ID +STATUS +RETRIES +AGE +TOPIC +ERROR$/);
  assert.equal(line, `${id}  PENDING  0/3      3d ago  list.v1  接続に失敗\\u001b[31m`);

  const dead = JSON.parse(await ok('dlq', 'list', 'list.v1', '--status', 'dead', '--json')) as {
    messages: readonly { status: string }[];
  };
  assert.deepEqual(
    dead.messages.map(({ status }) => status),
    ['DEAD'],
  );
});

test('list reads single pages, and all pages up to the limit', async () => {
  const ids = new Set<string>();
  for (let i = 0; i < 7; i += 1) ids.add(await insert({ topic: 'pages.v1' }));
  const first = await redrive(['dlq', 'list', 'pages.v1', '--page-size', '3']);
  assert.equal(first.err, '3 of 7 messages; next: --page 2\n');

  const json = await ok('dlq', 'list', 'pages.v1', '--all', '--page-size', '3', '--json');
  const pages = json
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { messages: readonly { id: string }[] });
  assert.deepEqual(
    pages.map(({ messages }) => messages.length),
    [3, 3, 1],
  );
  assert.deepEqual(new Set(pages.flatMap(({ messages }) => messages.map(({ id }) => id))), ids);

  const limited = await redrive(['dlq', 'list', 'pages.v1', '--all', '--limit', '5']);
  assert.equal(limited.out.trimEnd().split('\n').length, 1 + 5);
  const [, cursor = ''] = /continue with --cursor (\S+)/.exec(limited.err) ?? [];
  const others = await redrive(['dlq', 'list', 'pages.v1', '--cursor', cursor]);
  assert.equal(others.out.trimEnd().split('\n').length, 1 + 2);
});

test("--json prints the API's answer unchanged, and show keeps every digit of a payload", async () => {
  const id = await insert({ topic: 'show.v1', payload: '{"n": 12345678901234567890.10, "名前": "花子"}' });
  const answer = await fetch(`${server.url}/api/v1/dlq/messages/${id}`);
  assert.equal(await ok('dlq', 'show', id, '--json'), `${await answer.text()}\n`);
  const shown = await ok('dlq', 'show', id);
  assert.match(shown, new RegExp(`^id +${id}$`, 'm'));
  assert.match(shown, /\n {2}\{\n {4}"n": 12345678901234567890\.10,\n {4}"名前": "花子"\n {2}\}\n$/);
});

test('raw writes only the bytes', async () => {
  const id = await insert({ topic: 'raw.v1' });
  const value = Buffer.from([0x00, 0xff, 0x1b, 0x5b, 0x0a]);
  await database.db.query(sql`
    UPDATE dlq.dlq_messages
    SET source_topic = 'raw.dlq.v1', source_topic_id = gen_random_uuid(), source_partition = 0, source_offset = 0,
        raw_value = ${value}, message_key = NULL
    WHERE id = ${id}`);
  const raw = await redrive(['dlq', 'raw', id, '--value']);
  assert.deepEqual([raw.code, raw.bytes, raw.err], [0, value, '']);
  const key = await redrive(['dlq', 'raw', id, '--key']);
  assert.deepEqual([key.code, key.out], [1, '']);
  assert.match(key.err, /has no key/);
  assert.match(
    await ok('dlq', 'raw', id),
    /^key \(null\)\nvalue \(5 bytes, not text, shown as base64\)\n {2}AP8bWwo=\n/,
  );
});

test('the history shows the actor and reason of an action', async () => {
  const id = await insert({ topic: 'act.v1' });
  assert.equal(await ok('dlq', 'dead', id, '--reason', '注文は取消'), `${id} DEAD, 0 of 3 retries used\n`);
  await ok('dlq', 'reopen', id, '--reason', 'fixed', '--actor', '太郎');
  const history = await ok('dlq', 'history', id);
  assert.match(history, /PENDING -> DEAD .* hanako@\S+ .*注文は取消$/m);
  assert.match(history, /DEAD -> PENDING .* 太郎 .*fixed$/m);
});

test('retry reports whether the message was published', async () => {
  const id = await insert({ topic: 'retry.v1' });
  const refused = await redrive(['dlq', 'retry', id]);
  assert.deepEqual([refused.code, refused.out], [1, '']);
  assert.match(
    refused.err,
    /^redrive: the broker refused the message, and no attempt was used: .* \(SYS_DLQ_PUBLISH_REJECTED\)\n/,
  );
  assert.match(refused.err, /^ {2}request id: \S+$/m);

  const unsent = await redrive(['dlq', 'retry', id], { REDRIVE_URL: serverWithoutKafka.url });
  assert.deepEqual([unsent.code, unsent.out], [0, `${id} RESOLVED\n`]);
  assert.match(unsent.err, /nothing was published/);

  const again = await redrive(['dlq', 'retry', id]);
  assert.equal(again.code, 1);
  assert.match(again.err, /not retryable: status=RESOLVED.*\(SYS_DLQ_CONFLICT\)/);
});

test('retry-all reports messages that are left, and fails if there are any', async () => {
  await insert({ topic: 'all.v1' });
  const left = await redrive(['dlq', 'retry-all', 'all.v1']);
  assert.deepEqual([left.code, left.out], [1, '0 messages retried in topic all.v1\n']);
  assert.match(left.err, /^1 excluded:\n {2}1 target topic does not exist \(all\.v1\)$/m);
  const done = await redrive(['dlq', 'retry-all', 'all.v1', '--url', serverWithoutKafka.url]);
  assert.deepEqual([done.code, done.out], [0, '1 messages retried in topic all.v1\n']);
});

test('retry-all of more than one message asks for confirmation', async () => {
  for (let i = 0; i < 2; i += 1) await insert({ topic: 'several.v1' });
  const toServer = ['--url', serverWithoutKafka.url];
  const unsure = await redrive(['dlq', 'retry-all', 'several.v1', ...toServer]);
  assert.equal(unsure.code, 2);
  assert.match(unsure.err, /not interactive; pass --yes to confirm/);
  const sure = await redrive(['dlq', 'retry-all', 'several.v1', '--yes', ...toServer]);
  assert.deepEqual([sure.code, sure.out], [0, '2 messages retried in topic several.v1\n']);
});

test('retry-all of an unknown topic fails', async () => {
  const { code, out, err } = await redrive(['dlq', 'retry-all', 'nosuchtopic', '--yes']);
  assert.deepEqual([code, out], [1, '']);
  assert.match(err, /dlq topic not found: nosuchtopic \(SYS_DLQ_NOT_FOUND\)/);
});

test('delete asks for confirmation, and needs --yes without a terminal', async () => {
  const id = await insert({ topic: 'delete.v1' });
  const unsure = await redrive(['dlq', 'delete', id]);
  assert.equal(unsure.code, 2);
  assert.match(await ok('dlq', 'show', id), /PENDING/);
  assert.equal(await ok('dlq', 'delete', id, '--yes'), `message ${id} deleted\n`);
  const gone = await redrive(['dlq', 'show', id]);
  assert.equal(gone.code, 1);
  assert.match(gone.err, /SYS_DLQ_NOT_FOUND/);
});

test('sources, seek and accounting work on partitions', async () => {
  await database.db.query(sql`
    INSERT INTO dlq.source_partitions
      (cluster_id, topic, topic_id, partition, first_offset, next_offset, high_offset, log_start, log_end, stored)
    VALUES ('elsewhere', 'seek.dlq.v1', gen_random_uuid(), 0, 0, 10, 10, 0, 12, 10)`);
  assert.match(await ok('dlq', 'sources'), /^seek\.dlq\.v1 +0 +waiting +10 +12 +2 +- +0 /m);
  assert.match(await ok('dlq', 'accounting'), /^seek\.dlq\.v1 .* yes$/m);
  const sought = await ok('dlq', 'seek', 'seek.dlq.v1', '0', '--offset', '4', '--reason', 'restored');
  assert.equal(sought, 'seek.dlq.v1/0 is read again from offset 4\n');
  const beyond = await redrive(['dlq', 'seek', 'seek.dlq.v1', '0', '--offset', '99', '--reason', 'r']);
  assert.equal(beyond.code, 1);
  assert.match(beyond.err, /SYS_DLQ_SEEK_BEYOND_POSITION/);

  await database.db.query(sql`UPDATE dlq.source_partitions SET stored = 9 WHERE topic = 'seek.dlq.v1'`);
  const missing = await redrive(['dlq', 'accounting', '--json']);
  assert.equal(missing.code, 1);
  assert.equal((JSON.parse(missing.out) as { balanced: boolean }).balanced, false);
});

test('forget removes an unused partition, and recount corrects the counts', async () => {
  await database.db.query(sql`
    INSERT INTO dlq.source_partitions (cluster_id, topic, topic_id, partition, first_offset, next_offset, high_offset)
    VALUES ('shut down', 'forget.dlq.v1', gen_random_uuid(), 3, 0, 0, 0)`);
  const reason = ['--reason', 'the cluster was shut down'];
  assert.equal(
    await ok('dlq', 'forget', 'forget.dlq.v1', '3', ...reason),
    'source forget.dlq.v1/3 forgotten\n',
  );
  assert.doesNotMatch(await ok('dlq', 'sources'), /forget\.dlq/);
  const again = await redrive(['dlq', 'forget', 'forget.dlq.v1', '3', ...reason]);
  assert.equal(again.code, 1);
  assert.match(again.err, /SYS_DLQ_NOT_FOUND/);

  await insert({ topic: 'recount.v1' });
  await database.db.query(sql`
    INSERT INTO dlq.topic_counts (original_topic, status, messages, arrived) VALUES ('recount.v1', 'PENDING', 41, 0)`);
  assert.match(await ok('dlq', 'recount'), /^recount\.v1 +PENDING +42 +1$/m);
  assert.match(await ok('dlq', 'topics'), /^recount\.v1 +1 +0 /m);
  assert.equal(await ok('dlq', 'recount'), 'all counts are correct\n');
});

test('archive works on the database, without a server', async () => {
  const old = await insert({ topic: 'archive.v1', status: 'RESOLVED', daysOld: 40 });
  const young = await insert({ topic: 'archive.v1', status: 'RESOLVED', daysOld: 20 });
  assert.equal(await ok('dlq', 'archive', '--json'), '{"archived":1,"purged":0}\n');
  assert.match(await ok('dlq', 'show', old), /^status +RESOLVED \(archived\)$/m);
  assert.match(await ok('dlq', 'show', young), /^status +RESOLVED$/m);
  assert.equal(
    await ok('dlq', 'archive', '--retention-days', '10', '--purge-days', '30'),
    'archived 1 (unchanged for 10 days), purged 1 (unchanged for 30 days)\n',
  );
});

test('every kind of wrong input has its own exit code', async () => {
  const notAnId = await redrive(['dlq', 'show', 'nonsense']);
  assert.equal(notAnId.code, 2);
  assert.match(notAnId.err, /is not a message id/);
  const unknown = await redrive(['dlq', 'shwo']);
  assert.equal(unknown.code, 2);
  assert.match(unknown.err, /did you mean show/);
  const away = await redrive(['dlq', 'topics'], { REDRIVE_URL: 'http://127.0.0.1:1' });
  assert.equal(away.code, 69);
  assert.match(away.err, /nothing listens at http:\/\/127\.0\.0\.1:1/);
  const badConfig = await redrive(['serve'], { SERVER_PORT: 'abc' });
  assert.equal(badConfig.code, 78);
  assert.match(badConfig.err, /server\.port/);
  const noDatabase = await redrive(['migrate', 'status'], { DATABASE_URL: 'postgres://x@127.0.0.1:1/x' });
  assert.equal(noDatabase.code, 69);
  assert.match(noDatabase.err, /nothing listens at 127\.0\.0\.1:1/);
  const port = new URL(server.url).port;
  const taken = await redrive(['serve', '--port', port]);
  assert.equal(taken.code, 1);
  assert.match(taken.err, /is already in use: choose another one with --port/);
});

test('migrate lists, rolls back and applies migrations', async () => {
  const own = await createTestDatabase();
  const env = databaseEnv(own.url);
  try {
    assert.equal((await redrive(['migrate', 'status'], env)).code, 0);
    const down = await redrive(['migrate', 'down', 'dlq', '--to', '0', '--yes'], env);
    assert.match(down.out, /rolled back dlq\/001 create_schema\n$/);
    const status = await redrive(['migrate', 'status'], env);
    assert.equal(status.code, 1);
    assert.match(status.out, /^pending +dlq\/001 create_schema +-$/m);
    const doctor = await redrive(['doctor'], env);
    assert.equal(doctor.code, 1);
    assert.match(doctor.out, /^warning +migrations .*pending.*\n +-> run `redrive migrate up`/m);
    assert.match((await redrive(['migrate', 'up'], env)).out, /^applied dlq\/001 create_schema\n/);
    assert.equal((await redrive(['migrate', 'up'], env)).out, 'nothing to apply\n');
  } finally {
    await own.drop();
  }
});

test('a closed output pipe is not an error', async () => {
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message)
    SELECT 'head.v1', repeat('x', 2000) FROM generate_series(1, 500)`);
  const child = spawn(process.execPath, [main, 'dlq', 'list', 'head.v1', '--all'], {
    env: environment({ REDRIVE_URL: server.url }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.once('data', () => child.stdout.destroy());
  const [err, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  assert.deepEqual([code, err], [0, '']);
});
