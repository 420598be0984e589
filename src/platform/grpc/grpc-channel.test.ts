import assert from 'node:assert/strict';
import { createServer, type AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import {
  loadPackageDefinition,
  Metadata,
  Server,
  ServerCredentials,
  status,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServiceClientConstructor,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import { openGrpcChannel, type GrpcAnswer, type GrpcChannel } from './grpc-channel.ts';
import { loadProtoFiles, type ProtoTypes } from './proto-methods.ts';
import { askForTypes } from './reflection.ts';

const folder = new URL('../../../tests/support/protos/', import.meta.url).pathname;
const reserve = 'shop.inventory.v1.InventoryService.Reserve';
type Request = Readonly<{ sku: string; qty: string; note?: string }>;
const seen: { request: Request; metadata: Metadata }[] = [];
let server: Server;
let channel: GrpcChannel;
let types: ProtoTypes;

before(async () => {
  const definition = loadSync('inventory.proto', { includeDirs: [folder], keepCase: true, longs: String });
  const shop = loadPackageDefinition(definition) as unknown as {
    shop: { inventory: { v1: { InventoryService: ServiceClientConstructor } } };
  };
  server = new Server();
  server.addService(shop.shop.inventory.v1.InventoryService.service, {
    reserve: answerReserve,
    release: (_call: unknown, done: sendUnaryData<object>) => done(null, {}),
  });
  new ReflectionService(definition).addToServer(server);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  channel = openGrpcChannel({ host: '127.0.0.1', port, maxAnswerBytes: 1000 });
  types = loadProtoFiles(folder);
});
after(() => {
  channel.close();
  server.forceShutdown();
});

function answerReserve(call: ServerUnaryCall<Request, object>, done: sendUnaryData<object>): void {
  seen.push({ request: call.request, metadata: call.metadata });
  switch (call.request.sku) {
    case 'refused': {
      const metadata = new Metadata();
      metadata.set('saga-result', 'working');
      return done({ code: status.UNAVAILABLE, details: 'still at it', metadata });
    }
    case 'huge':
      return done(null, { reservation_id: 'x'.repeat(2000) });
    case 'silent':
      return;
    default:
      done(null, { reservation_id: 'r-1', reserved_at: { seconds: 1_800_000_000 }, qty: call.request.qty });
  }
}

function call(
  request: unknown,
  more: Readonly<{ timeoutMs?: number; signal?: AbortSignal }> = {},
): Promise<GrpcAnswer> {
  const method = types.method(reserve) ?? assert.fail();
  return channel.call({
    path: method.path,
    request: method.encode(request),
    metadata: { 'saga-id': 's-1' },
    timeoutMs: more.timeoutMs ?? 5000,
    signal: more.signal ?? new AbortController().signal,
  });
}

test('a call goes by the .proto file, with the names that stand there', async () => {
  const request = {
    sku: 'shoe',
    qty: '9007199254740993',
    counts: { a: 1 },
    speed: 'FAST',
    some_tags: [{ name: 't' }],
  };
  const answer = await call(request);
  assert.equal(answer.end, 'answered');
  const method = types.method(reserve) ?? assert.fail();
  assert.deepEqual(answer.end === 'answered' && method.decode(answer.response), {
    reservation_id: 'r-1',
    reserved_at: '2027-01-15T08:00:00Z',
    qty: '9007199254740993',
  });
  assert.equal(seen.at(-1)?.request.qty, '9007199254740993');
  assert.deepEqual(seen.at(-1)?.metadata.get('saga-id'), ['s-1']);
});

test('a server that describes itself needs no file', async () => {
  const asked = await askForTypes(channel);
  assert.deepEqual(asked.methods().toSorted(), types.methods().toSorted());
  const method = asked.method(reserve) ?? assert.fail();
  const request = { sku: 'shoe', qty: 2, some_tags: [{ name: 't' }], note: '' };
  assert.deepEqual(method.encode(request), types.method(reserve)?.encode(request));
  assert.equal(asked.method('shop.inventory.v1.InventoryService.Nothing'), null);
  assert.equal(asked.method('shop.inventory.v1.InventoryService.Watch')?.isStreaming, true);
});

test('a value that does not fit the type is refused before anything is sent', () => {
  const method = types.method(reserve) ?? assert.fail();
  assert.throws(() => method.encode({ sku: 5 }), /sku/);
  assert.throws(() => method.encode({ skuu: 'x' }));
  assert.throws(() => method.encode('text'));
});

test('what has its default is told as well, and a request may hold more where that is said', async () => {
  const answer = await call({ sku: 'shoe' });
  const method = types.method(reserve) ?? assert.fail();
  const told = answer.end === 'answered' && (method.decode(answer.response) as Record<string, unknown>);
  assert.equal(told && told['qty'], '0');
  const released = types.method('shop.inventory.v1.InventoryService.Reserve')?.encode;
  assert.throws(() => released?.({ sku: 'shoe', colour: 'red' }));
  assert.deepEqual(
    released?.({ sku: 'shoe', colour: 'red' }, { ignoresUnknown: true }),
    released?.({ sku: 'shoe' }),
  );
});

test('a call that may not begin any more is not sent', async () => {
  const method = types.method(reserve) ?? assert.fail();
  const before = seen.length;
  const { signal } = new AbortController();
  const answer = await channel.call({
    path: method.path,
    request: method.encode({}),
    metadata: {},
    timeoutMs: 1000,
    signal,
    mayBegin: () => false,
  });
  assert.deepEqual([answer.end, seen.length], ['not_sent', before]);
});

test('a failure has its code, its words and its trailers', async () => {
  const answer = await call({ sku: 'refused' });
  assert.ok(answer.end === 'failed');
  assert.deepEqual(
    [answer.code, answer.detail, answer.trailers['saga-result']],
    ['UNAVAILABLE', 'still at it', 'working'],
  );
});

test('an answer that is too large, none in time, and a call that is given up are failures', async () => {
  const huge = await call({ sku: 'huge' });
  assert.equal(huge.end === 'failed' && huge.code, 'RESOURCE_EXHAUSTED');
  const late = await call({ sku: 'silent' }, { timeoutMs: 100 });
  assert.equal(late.end === 'failed' && late.code, 'DEADLINE_EXCEEDED');
  const abort = new AbortController();
  const before = seen.length;
  const givenUp = call({ sku: 'silent' }, { signal: abort.signal });
  while (seen.length === before) await new Promise((resolve) => setImmediate(resolve));
  abort.abort();
  const answer = await givenUp;
  assert.equal(answer.end === 'failed' && answer.code, 'CANCELLED');
});

test('where nobody listens nothing is sent, and that is certain', async () => {
  const listener = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => listener.once('listening', resolve));
  const { port } = listener.address() as AddressInfo;
  await new Promise((resolve) => listener.close(resolve));
  const away = openGrpcChannel({ host: '127.0.0.1', port, maxAnswerBytes: 1000 });
  const method = types.method(reserve) ?? assert.fail();
  const { signal } = new AbortController();
  const answer = await away.call({
    path: method.path,
    request: method.encode({}),
    metadata: {},
    timeoutMs: 300,
    signal,
  });
  away.close();
  assert.equal(answer.end, 'not_sent');
});
