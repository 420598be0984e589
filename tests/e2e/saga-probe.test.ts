import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { json } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import {
  loadPackageDefinition,
  Server,
  ServerCredentials,
  type ServiceClientConstructor,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import express from 'express';
import type { Pool } from 'pg';
import { createInventory } from '../../examples/order-participants/inventory.ts';
import { createPayment } from '../../examples/order-participants/payment.ts';
import { serve, type RunningService, type Service } from '../../examples/order-participants/serve.ts';
import { createShipping } from '../../examples/order-participants/shipping.ts';
import { runCli } from '../../src/cli/run-cli.ts';
import { expressHandler, grpcHandler, sagaGuard } from '../../src/sdk/index.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { openServicePool } from '../support/guarded-steps.ts';

const protos = fileURLToPath(new URL('../support/protos/', import.meta.url));
let database: TestDatabase;
let pool: Pool;
const running: RunningService[] = [];

before(async () => {
  database = await createTestDatabase('empty');
  pool = openServicePool(database.url);
});
after(async () => {
  await Promise.all(running.map((each) => each.stop()));
  await pool.end();
  await database.drop();
});

async function start(service: Service): Promise<string> {
  const started = await serve(service, 0);
  running.push(started);
  return started.url;
}

async function startNaive(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const stop = async (): Promise<void> => server.close().closeAllConnections();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  running.push({ url, stop });
  return url;
}

type Probed = Readonly<{ code: number; out: string; err: string }>;

async function run(...args: readonly string[]): Promise<Probed> {
  const said = { out: '', err: '' };
  const into = (stream: 'out' | 'err') => ({
    write: (data: string | Uint8Array): void => void (said[stream] += data.toString()),
  });
  const terminal = { env: {}, stdin: new PassThrough(), stdout: into('out'), stderr: into('err') };
  const code = await runCli(['saga', 'probe', ...args], terminal);
  return { code, ...said };
}

function probe(
  url: string,
  [action, undo]: readonly [action: string, undo: string],
  ...more: readonly string[]
): Promise<Probed> {
  const body = { order_id: 'o-1', sku: 'shoe', qty: 1, customer: 'alice', amount: 5 };
  const target = ['--action', `POST ${action}`, '--undo', undo];
  return run(url, ...target, '--body', JSON.stringify(body), ...more);
}

type Told = Readonly<{
  passed: number;
  failed: number;
  skipped: number;
  checks: readonly Readonly<{ check: string; result: string; found: string | null }>[];
}>;

async function failuresOf(url: string, paths: readonly [string, string]): Promise<readonly string[]> {
  const { code, out } = await probe(url, paths, '--json');
  const { checks } = JSON.parse(out) as Told;
  assert.equal(code, checks.every(({ result }) => result === 'pass') ? 0 : 1);
  return checks.flatMap(({ check, result }) => (result === 'fail' ? [check] : []));
}

test('guarded participants pass every check, and the probe undoes its actions', async () => {
  const inventory = await start(await createInventory(pool));
  await pool.query(`INSERT INTO stock VALUES ('shoe', 1000)`);
  const { code, out, err } = await probe(inventory, ['/reserve', '/release']);
  assert.equal(code, 0, out + err);
  assert.match(out, /^undo-first +pass /m);
  assert.match(err, /^17 passed, 0 failed, 0 skipped$/m);
  const { rows } = await pool.query(`SELECT available, (SELECT count(*)::int FROM reservations) FROM stock`);
  assert.deepEqual(rows, [{ available: 1000, count: 0 }]);

  const payment = await start(await createPayment(pool));
  await pool.query(`INSERT INTO accounts VALUES ('alice', 1000)`);
  assert.deepEqual(await failuresOf(payment, ['/charge', '/refund']), []);
  const accounts = await pool.query(`SELECT balance FROM accounts`);
  assert.deepEqual(accounts.rows, [{ balance: 1000 }]);
});

test('guarded participants pass every check in Express, with and without a body parser', async () => {
  const guard = sagaGuard({ pool });
  await guard.migrate();
  let reservations = 0;
  const action = guard.action(() => ({ reservation_id: `r-${(reservations += 1)}` }));
  const undo = guard.undo(() => null);
  for (const parsers of [[], [express.json()]]) {
    const app = express();
    for (const parser of parsers) app.use(parser);
    const router = express.Router();
    router.post('/reserve', expressHandler(action));
    router.post('/release', expressHandler(undo));
    const url = await startNaive(app.use('/inventory', router));
    assert.deepEqual(await failuresOf(url, ['/inventory/reserve', '/inventory/release']), []);
  }
  await guard.stop();
});

test('a guarded long action passes every check', async () => {
  const shipping = await start(await createShipping(pool, 10));
  assert.deepEqual(await failuresOf(shipping, ['/dispatch', '/call-back']), []);
  const { rows } = await pool.query(`SELECT count(*)::int FROM shipments WHERE NOT called_back`);
  assert.deepEqual(rows, [{ count: 0 }]);
});

test('a naive participant fails the checks of duplicates and order', async () => {
  let actions = 0;
  const url = await startNaive((request, response) => {
    request.resume();
    const answer = request.url === '/do' ? { id: (actions += 1) } : { undone: true };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  });
  assert.deepEqual(await failuresOf(url, ['/do', '/undo']), [
    'action-again',
    'action-after-undo',
    'undo-first',
    'overlapping-actions',
    'overlapping-undo',
    'other-body',
    'late-action',
    'late-undo',
    'late-repetition',
    'forgotten-undo',
    'no-saga-id',
    'no-saga-step',
    'no-saga-op',
  ]);
});

test('a participant that only stores idempotency keys fails the checks of concurrent undo and action', async () => {
  const answers = new Map<string, string>();
  const keyed = async (request: IncomingMessage): Promise<Readonly<{ status: number; text: string }>> => {
    const body = await json(request);
    const { headers } = request;
    const key = String(headers['idempotency-key']);
    if (['saga-id', 'saga-step', 'saga-op'].some((name) => headers[name] === undefined))
      return { status: 400, text: '{}' };
    const known = answers.get(key);
    if (known !== undefined && known !== JSON.stringify(body)) return { status: 422, text: '{}' };
    answers.set(key, JSON.stringify(body));
    return { status: 200, text: JSON.stringify({ key }) };
  };
  const url = await startNaive((request, response) => {
    void keyed(request).then(({ status, text }) => response.writeHead(status).end(text));
  });
  assert.deepEqual(await failuresOf(url, ['/do', '/undo']), [
    'action-after-undo',
    'undo-first',
    'overlapping-undo',
    'late-action',
    'late-undo',
    'forgotten-undo',
  ]);
});

test('if the action fails, the other checks are skipped', async () => {
  const url = await startNaive((request, response) => {
    request.resume();
    response.writeHead(404).end('no such \u001b[31mpage');
  });
  const { code, out, err } = await probe(url, ['/do', '/undo']);
  assert.equal(code, 1);
  assert.match(out, /^action: the action returned HTTP 404 no such \\u001b\[31mpage$/m);
  assert.match(err, /^0 passed, 2 failed, 15 skipped$/m);
});

test('an unreachable participant is reported', async () => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  const { code, err } = await probe(`http://127.0.0.1:${port}`, ['/do', '/undo']);
  assert.equal(code, 69);
  assert.match(err, /cannot reach the participant/);
});

async function startGrpc(): Promise<string> {
  const guard = sagaGuard({ pool });
  await guard.migrate();
  const definition = loadSync('inventory.proto', { includeDirs: [protos], keepCase: true, longs: String });
  const loaded = loadPackageDefinition(definition) as unknown as {
    shop: { inventory: { v1: { InventoryService: ServiceClientConstructor } } };
  };
  const server = new Server();
  let reservations = 0;
  server.addService(loaded.shop.inventory.v1.InventoryService.service, {
    Reserve: grpcHandler(guard.action(() => ({ reservation_id: `r-${(reservations += 1)}` }))),
    Release: grpcHandler(guard.undo(() => null)),
  });
  new ReflectionService(definition).addToServer(server);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  const url = `grpc://127.0.0.1:${port}`;
  running.push({ url, stop: async () => server.forceShutdown() });
  return url;
}

test('a guarded participant passes every check over gRPC, with .proto files and with server reflection', async () => {
  const url = await startGrpc();
  const service = 'shop.inventory.v1.InventoryService';
  const target = ['--action', `${service}.Reserve`, '--undo', `${service}.Release`];
  const bodies = ['--body', '{"sku":"shoe"}', '--undo-body', '{}', '--other-body', '{"sku":"boot"}'];
  for (const proto of [[], ['--proto', protos]]) {
    const { code, out, err } = await run(url, ...target, ...bodies, ...proto);
    assert.equal(code, 0, out + err);
    assert.match(err, /^17 passed/m);
  }
  const wrongMethod = await run(url, '--action', 'no.Such.Method', '--undo', 'no.Such.Undo', ...bodies);
  assert.equal(wrongMethod.code, 2);
  assert.match(wrongMethod.err, /no method no\.Such\.Method/);
  const wrongBody = await run(url, ...target, ...bodies, '--body', '{"skuu":1}');
  assert.equal(wrongBody.code, 2);
  assert.match(wrongBody.err, /not a valid message for/);
});

const wrong: readonly (readonly [args: readonly string[], error: RegExp])[] = [
  [['ftp://x', '--action', '/a', '--undo', '/u', '--body', '{}'], /Use a URL such as/],
  [['http://x', '--action', 'a', '--undo', '/u', '--body', '{}'], /not a method and path such as/],
  [['http://x', '--action', '/a', '--undo', '/u', '--body', '{'], /the body is not JSON/],
  [['http://x', '--action', '/a', '--undo', '/u', '--body', '[1]'], /--other-body/],
  [
    ['http://x', '--action', '/a', '--undo', '/u', '--body', '{}', '--header', 'x'],
    /Use the form 'name: value'/,
  ],
  [['http://x', '--action', '/a', '--undo', '/u'], /--body or --body-file/],
  [['grpc://x', '--action', 'a.B.C', '--undo', 'a.B.D', '--body', '{}'], /--other-body/],
  [
    ['grpc://x', '--action', '/a', '--undo', '/u', '--body', '{}', '--other-body', '{}'],
    /not a method such as/,
  ],
];
for (const [args, error] of wrong)
  test(`redrive saga probe ${args.join(' ')} is a usage error`, async () => {
    const { code, err } = await run(...args);
    assert.equal(code, 2);
    assert.match(err, error);
  });
