import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type Server as HttpServer,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { childEnv } from '../support/child-env.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { databaseEnv } from '../support/pooler.ts';

/**
 * The outbox from the command line: every command is a process of its own, talking to a server that is another
 * one, whose orders go to a destination in this process.
 */
const main = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

type Server = Readonly<{ url: string; stop(): Promise<void> }>;
type Ended = Readonly<{ code: number | null; out: string; err: string }>;

let database: TestDatabase;
let server: Server;
/** What is started is stopped, also where the next thing did not start. */
const stops: (() => unknown)[] = [];

before(async () => {
  database = await createTestDatabase();
  stops.push(() => database.drop());
  const destination = await startDestination();
  stops.push(() => destination.close());
  const { port } = destination.address() as AddressInfo;
  server = await startServer({
    broker: { type: 'http', url: `http://127.0.0.1:${port}/orders` },
    closed: { type: 'http', url: 'http://127.0.0.1:1/orders' },
  });
  stops.push(() => server.stop());
});
after(async () => {
  for (const stop of stops.toReversed()) await stop();
});

async function startDestination(): Promise<HttpServer> {
  const listening = createServer((request, response) => void answer(request, response));
  listening.listen(0, '127.0.0.1');
  await once(listening, 'listening');
  return listening;
}

/** Does what an order's symbol says: takes it, refuses it, or leaves everybody in doubt. */
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { symbol } = JSON.parse(await text(request)) as { symbol: string };
  const status = { BAD: 400, DOUBT: 500 }[symbol] ?? 200;
  const body = status === 200 ? { broker_order_id: `brk-\u001b[31m-${symbol}` } : { error: 'no' };
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Of this process's environment only what a program needs to run: the test run's own settings stay out. */
function environment(env: Readonly<Record<string, string>>): Record<string, string> {
  return { ...childEnv, USER: 'hanako', ...databaseEnv(database.url), ...env };
}

async function startServer(destinations: object): Promise<Server> {
  const child = spawn(process.execPath, [main, 'serve', '--port', '0'], {
    env: environment({ OUTBOX_DESTINATIONS: JSON.stringify(destinations), OUTBOX_IDLE_SLEEP_MS: '20' }),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  for await (const line of createInterface({ input: child.stdout })) {
    const { msg, url } = JSON.parse(line) as { msg: string; url?: string };
    if (msg !== 'redrive is ready' || url === undefined) continue;
    child.stdout.resume();
    return {
      url,
      async stop() {
        child.kill('SIGTERM');
        await ended;
      },
    };
  }
  throw new Error('the server did not start');
}

async function redrive(args: readonly string[], stdin = ''): Promise<Ended> {
  const child = spawn(process.execPath, [main, 'outbox', ...args], {
    env: environment({ REDRIVE_URL: server.url }),
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(stdin);
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  return { code, out, err };
}

/** Everything went well and nothing was said beside the result. */
async function ok(...args: readonly string[]): Promise<string> {
  const { code, out, err } = await redrive(args);
  assert.deepEqual([code, err], [0, '']);
  return out;
}

async function refused(code: number, ...args: readonly string[]): Promise<string> {
  const ended = await redrive(args);
  assert.deepEqual([ended.code, ended.out], [code, ''], ended.err);
  return ended.err;
}

type Placed = Readonly<{ id: string; key: string }>;

let placedSoFar = 0;

async function place(symbol: string, ...more: readonly string[]): Promise<Placed> {
  placedSoFar += 1;
  const key = `order-${String(placedSoFar).padStart(6, '0')}`;
  const out = await ok(
    'add',
    '--destination',
    'broker',
    '--key',
    key,
    '--request',
    JSON.stringify({ symbol }),
    ...more,
  );
  const [, id] = /^(\d+) queued for \w+\n$/.exec(out) ?? [];
  assert.ok(id, out);
  return { id, key };
}

/** Until the workers have brought it there. */
async function becomes(id: string, status: RegExp): Promise<string> {
  return eventually(async () => {
    const shown = await ok('show', id);
    assert.match(shown, status);
    return shown;
  });
}

test('an order is sent, and show and ledger print its result', async () => {
  const { id, key } = await place('GOOD', '--ordering-key', 'account-7', '--trace-id', '\u001b[2J注文');
  const shown = await becomes(id, /^status +sent$/m);
  assert.match(shown, new RegExp(`^id +${id}$`, 'm'));
  assert.match(shown, /^ordering key +account-7$/m);
  assert.match(shown, /^trace id +\\u001b\[2J注文$/m);
  assert.match(shown, /^outside id +brk-\\u001b\[31m-GOOD$/m);
  assert.match(shown, /\nrequest\n {2}\{\n {4}"symbol": "GOOD"\n {2}\}\n/);
  assert.match(shown, /\naudit\n/);
  assert.match(shown, /queued .*hanako@/);
  assert.match(shown, /sending -> sent/);

  const ledger = await ok('ledger', key);
  assert.match(ledger, /^effect +succeeded: it took effect once$/m);
  assert.match(ledger, /^outside id +brk-\\u001b\[31m-GOOD$/m);
  assert.match(ledger, new RegExp(`^order +${id}, sent, for broker$`, 'm'));
  for (const path of [`orders/${id}`, `ledger/${key}`]) {
    const [kind = '', name = ''] = path.split('/');
    const answer = await fetch(`${server.url}/api/v1/outbox/${path}`);
    assert.equal(await ok(kind === 'orders' ? 'show' : kind, name, '--json'), `${await answer.text()}\n`);
  }
});

test('adding an order twice reports the first one, and a different order with its key is rejected', async () => {
  const { id, key } = await place('GOOD');
  const args = ['add', '--destination', 'broker', '--key', key, '--request-file', '-'];
  const again = await redrive(args, '{ "symbol" : "GOOD" }');
  assert.deepEqual([again.code, again.out], [0, `${id} queued for broker\n`]);
  assert.match(again.err, new RegExp(`run \`redrive outbox show ${id}\`\n$`));
  const other = await redrive(args, '{"symbol":"BAD"}');
  assert.equal(other.code, 1);
  assert.match(other.err, /\(SYS_OUTBOX_IDEMPOTENCY_MISMATCH\)/);
});

test('the server receives the request unchanged', async () => {
  const add = ['add', '--destination', 'broker', '--key', 'order-exact', '--request'];
  assert.match(await refused(2, ...add, '{"qty":12345678901234567890.1}'), /qty.*double/);
  assert.match(await refused(2, ...add, '{"qty":1,"qty":2}'), /qty.*twice/);
  assert.match(await refused(2, 'add', '--key', 'order-exact', '--request', '{}'), /destination is required/);
  assert.match(await refused(2, 'add', '--key', 'short', '--request', '{}'), /idempotency_key/);
});

test('a dead order needs attention until it is skipped', async () => {
  const { id } = await place('BAD');
  await becomes(id, /^status +dead$/m);
  assert.match(await ok('show', id), /^needs attention +run redrive outbox supersede or skip$/m);
  const waiting = await redrive(['list', '--needs-attention']);
  assert.match(waiting.out, new RegExp(`^ *${id} +dead +0 .* broker +order-\\d+ +BAD_REQUEST`, 'm'));
  assert.equal(await ok('skip', id, '--reason', '電話で済み'), `${id} dead (skipped)\n`);
  assert.match(await ok('show', id), /dead .* hanako@\S+ .*電話で済み$/m);
  assert.doesNotMatch((await redrive(['list', '--needs-attention'])).out, new RegExp(`^ *${id} `, 'm'));
  assert.match(await refused(1, 'skip', id), /status=dead, resolution=skipped.*\(SYS_OUTBOX_CONFLICT\)/);
});

test('a corrected order replaces a dead one', async () => {
  const { id } = await place('BAD', '--ordering-key', 'account-8');
  const behind = await place('GOOD', '--ordering-key', 'account-8');
  await becomes(id, /^status +dead$/m);
  await becomes(behind.id, /^status +queued \(blocked\)$/m);
  const corrected = ['--key', `corrected-${id}`, '--request', '{"symbol":"GOOD"}', '--reason', 'misspelt'];
  const out = await ok('supersede', id, ...corrected);
  const [, newId = ''] = new RegExp(`^(\\d+) queued \\(replaces ${id}\\)\n$`).exec(out) ?? [];
  await becomes(newId, /^status +sent$/m);
  await becomes(behind.id, /^status +sent$/m);
  assert.match(await ok('show', id), new RegExp(`^superseded by +${newId}$`, 'm'));
  assert.match(await ok('show', newId), new RegExp(`^supersedes +${id}$`, 'm'));
  const again = await redrive(['supersede', id, ...corrected]);
  assert.equal(again.code, 0);
  assert.match(again.err, /already added/);
});

test('an order in doubt needs --effect-checked', async () => {
  const { id, key } = await place('DOUBT');
  const shown = await becomes(id, /^status +dead \(in doubt\)$/m);
  assert.match(shown, /^needs attention +check the receiver, .* --effect-checked$/m);
  assert.match(await ok('ledger', key), /in doubt, an attempt may have taken effect/);
  assert.match(await refused(1, 'skip', id), /\(SYS_OUTBOX_EFFECT_UNCHECKED\)/);
  assert.equal(await ok('skip', id, '--effect-checked'), `${id} dead (skipped, in doubt)\n`);
});

test('an unsent order can be cancelled, a sent one cannot', async () => {
  const { id } = await place('GOOD', '--destination', 'closed');
  await becomes(id, /^status +failed$/m);
  // A worker may have taken it again this moment.
  const cancelled = await eventually(() => ok('cancel', id));
  assert.equal(cancelled, `${id} dead (cancelled)\n`);
  const sent = await place('GOOD');
  await becomes(sent.id, /^status +sent$/m);
  assert.match(await refused(1, 'cancel', sent.id), /\(SYS_OUTBOX_ALREADY_SENT\)/);
});

test('list filters, reads single pages, and all pages up to the limit', async () => {
  for (let i = 0; i < 5; i += 1) await place('GOOD', '--destination', 'closed');
  const first = await redrive(['list', '--destination', 'closed', '--page-size', '2']);
  assert.match(first.out, /^ *ID +STATUS +RETRIES +AGE +DESTINATION +KEY +ERROR\n/);
  assert.match(first.err, /^2 of \d+ orders; next: --page 2\n$/);
  const limited = await redrive([
    'list',
    '--destination',
    'closed',
    '--all',
    '--limit',
    '3',
    '--page-size',
    '2',
  ]);
  assert.equal(limited.out.trimEnd().split('\n').length, 1 + 3);
  const [, cursor = ''] = /continue with --cursor (\S+)/.exec(limited.err) ?? [];
  const others = await redrive(['list', '--destination', 'closed', '--cursor', cursor]);
  assert.ok(others.out.trimEnd().split('\n').length >= 1 + 2);

  const { id, key } = await place('GOOD');
  const found = JSON.parse(await ok('list', '--key', key, '--json')) as { orders: readonly { id: number }[] };
  assert.deepEqual(
    found.orders.map((order) => String(order.id)),
    [id],
  );
  const none = await redrive(['list', '--until', '2020-01-01T00:00:00Z']);
  assert.deepEqual([none.code, none.out, none.err], [0, '', 'no orders\n']);
  assert.match(await refused(2, 'list', '--since', 'yesterday'), /how long ago, such as 30m/);
  assert.match(await refused(2, 'list', '--since', '2026-02-30T00:00:00Z'), /created_from/);
  assert.match((await redrive(['list', '--since', '1h', '--key', key])).out, new RegExp(key));
  assert.match((await redrive(['list', '--until', '1h', '--key', key])).err, /no orders/);
});

test('destinations prints the waiting orders', async () => {
  const out = await eventually(async () => {
    const shown = await ok('destinations');
    assert.match(shown, /^broker +http +none +0 +- +0 +0 +sending$/m);
    return shown;
  });
  assert.match(out, /^NAME +TYPE +IDEMPOTENCY +WAITING +LAG +DEAD +IN FLIGHT +STATE\n/);
  assert.match(out, /^closed +http +none +[1-9]/m);
});

test('unknown orders and keys are reported', async () => {
  assert.match(await refused(1, 'show', '999999'), /\(SYS_OUTBOX_NOT_FOUND\)/);
  assert.match(await refused(1, 'ledger', 'no-such-key'), /\(SYS_OUTBOX_NOT_FOUND\)/);
  assert.match(await refused(2, 'show', 'nonsense'), /\(SYS_OUTBOX_VALIDATION_ERROR\)/);
});
