import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import {
  Client,
  credentials,
  loadPackageDefinition,
  Metadata,
  Server,
  ServerCredentials,
  status,
  type ServiceClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { fastify } from 'fastify';
import { inMs, newStep, openGuardScene, type GuardScene } from '../../../tests/support/guarded-steps.ts';
import { judgeGrpcAnswer, judgeHttpAnswer, type Answer } from '../../saga/domain/judge-answer.ts';
import { expressHandler } from './express-handler.ts';
import { fastifyHandler } from './fastify-handler.ts';
import type { GuardRequest } from './guard-call.ts';
import { refuse } from './guard-reply.ts';
import type { Guarded } from './guarded-action.ts';
import { grpcHandler } from './grpc-handler.ts';

let scene: GuardScene;
const stops: (() => Promise<unknown>)[] = [];

/** How a participant is called, and what a saga makes of its answer. */
type Send = (op: 'action' | 'undo', request: GuardRequest) => Promise<Answer>;
const sends: Record<string, Send> = {};
const parsedBefore = 'node:http with a body parsed before, as Express has it,';

before(async () => {
  scene = await openGuardScene();
  const { action, undo } = handlers();
  const plain = createServer((request, response) => {
    expressHandler(request.url === '/action' ? action : undo)(request, response);
  }).listen(0, '127.0.0.1');
  await once(plain, 'listening');
  stops.push(async () => plain.close().closeAllConnections());
  sends['node:http'] = overHttp(`http://127.0.0.1:${(plain.address() as AddressInfo).port}`);

  // As Express hands a request over, its body parsed by express.json().
  const parsed = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = [];
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
      const body = JSON.parse(Buffer.concat(chunks).toString()) as unknown;
      expressHandler(request.url === '/action' ? action : undo)(Object.assign(request, { body }), response);
    })();
  }).listen(0, '127.0.0.1');
  await once(parsed, 'listening');
  stops.push(async () => parsed.close().closeAllConnections());
  sends[parsedBefore] = overHttp(`http://127.0.0.1:${(parsed.address() as AddressInfo).port}`);

  const app = fastify();
  app.post('/action', fastifyHandler(action));
  app.post('/undo', fastifyHandler(undo));
  sends['Fastify'] = overHttp(await app.listen({ host: '127.0.0.1', port: 0 }));
  stops.push(() => app.close());
  sends['gRPC'] = await overGrpc(action, undo);
});
after(async () => {
  await Promise.all(stops.map((stop) => stop()));
  await scene.close();
});

type Order = Readonly<{ sku: string }>;

function handlers(): Readonly<{ action: Guarded; undo: Guarded }> {
  return {
    action: scene.guard.action<Order>(async (tx, { sagaId, body }) => {
      await scene.effect(tx, sagaId, 'action');
      if (body.sku === 'none') throw refuse({ reason: 'sold out' });
      if (body.sku === 'wrong') throw refuse({ reason: 'no such shoe' }, 422);
      if (body.sku === 'fire') throw new Error('the shelf is on fire');
      return { reservation_id: 'r-注文' };
    }),
    undo: scene.guard.undo((tx, { sagaId }) => scene.effect(tx, sagaId, 'undo')),
  };
}

function overHttp(base: string): Send {
  return async (op, { headers, body }) => {
    const answer = await fetch(`${base}/${op}`, {
      method: 'POST',
      headers: { ...(headers as Record<string, string>), 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return judgeHttpAnswer(
      {
        status: answer.status,
        headers: Object.fromEntries(answer.headers),
        body: Buffer.from(await answer.arrayBuffer()),
        isBodyCut: false,
      },
      new Date(),
    );
  };
}

async function overGrpc(action: Guarded, undo: Guarded): Promise<Send> {
  const includeDirs = [new URL('../../../tests/support/protos/', import.meta.url).pathname];
  const definition = loadSync('inventory.proto', { includeDirs, keepCase: true, longs: String });
  const loaded = loadPackageDefinition(definition) as unknown as {
    shop: { inventory: { v1: { InventoryService: ServiceClientConstructor } } };
  };
  const { service } = loaded.shop.inventory.v1.InventoryService;
  const server = new Server();
  server.addService(service, { Reserve: grpcHandler(action), Release: grpcHandler(undo) });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  stops.push(async () => {
    client.close();
    server.forceShutdown();
  });
  return (op, { headers, body }) =>
    new Promise((resolve) => {
      const metadata = new Metadata();
      for (const [name, value] of Object.entries(headers)) metadata.set(name, String(value));
      const method = op === 'action' ? service['Reserve'] : service['Release'];
      assert.ok(method);
      client.makeUnaryRequest<unknown, unknown>(
        method.path,
        method.requestSerialize,
        method.responseDeserialize,
        body,
        metadata,
        (error: ServiceError | null, message) => {
          const { code = status.OK, details = '' } = error ?? {};
          const trailers = Object.fromEntries(
            Object.entries(error?.metadata.getMap() ?? {}).map(([name, value]) => [name, String(value)]),
          );
          resolve(judgeGrpcAnswer({ code, details, trailers, message }, new Date()));
        },
      );
    });
}

for (const name of ['node:http', parsedBefore, 'Fastify', 'gRPC']) {
  const send: Send = (op, request) => (sends[name] ?? assert.fail(name))(op, request);
  const classOf = async (...call: Parameters<Send>): Promise<string> => (await send(...call)).class;

  test(`over ${name} a saga understands what the guard says`, async () => {
    const step = newStep();
    const order = { sku: 'shoe' };
    const first = await send('action', step.action(order));
    assert.equal(first.class, 'done');
    const { reservation_id } = (first.class === 'done' ? first.output : {}) as { reservation_id?: string };
    assert.equal(reservation_id, 'r-注文');
    assert.deepEqual(await send('action', step.action(order)), first);
    const other = await send('action', step.action({ sku: 'boot' }));
    assert.equal(other.class, 'refused');
    assert.match('detail' in other ? other.detail : '', /SAGA_MISMATCH/);
    assert.equal(await classOf('undo', step.undo({ 'saga-deadline': inMs(-1000) })), 'unknown');
    assert.equal(await classOf('undo', step.undo()), 'done');
    assert.equal(await classOf('action', step.action(order)), 'refused');
    assert.deepEqual(await scene.effectsOf(step.sagaId), ['action', 'undo']);
  });

  test(`over ${name} refusals, faults and calls that are not readable are told apart`, async () => {
    for (const sku of ['none', 'wrong']) {
      const step = newStep();
      const refusal = await send('action', step.action({ sku }));
      assert.equal(refusal.class, 'refused');
      assert.match('detail' in refusal ? refusal.detail : '', /sold out|no such shoe/);
      assert.deepEqual(await scene.effectsOf(step.sagaId), []);
    }
    assert.equal(await classOf('action', newStep().action({ sku: 'fire' })), 'unknown');
    assert.equal(await classOf('action', { ...newStep().action({ sku: 'shoe' }), headers: {} }), 'defect');
    const old = { 'saga-started-at': inMs(-500 * 86_400_000) };
    assert.equal(await classOf('undo', newStep().undo(old)), 'defect');
  });

  test(`over ${name} who meets a running action is told to poll`, async () => {
    const step = newStep();
    const client = await scene.pool.connect();
    try {
      await client.query('BEGIN');
      await client.query(
        `INSERT INTO public.redrive_saga_steps (saga_id, step, phase) VALUES ($1, 'reserve', 'done')`,
        [step.sagaId],
      );
      const answer = await send('undo', step.undo());
      assert.ok(answer.class === 'working');
      assert.equal(answer.retryAfterMs, 1000);
      await client.query('ROLLBACK');
    } finally {
      client.release();
    }
    assert.equal(await classOf('undo', step.undo()), 'done');
  });
}

test('over node:http a body that is not JSON, and one that is too large, are refused', async () => {
  const plain = createServer(expressHandler(handlers().action)).listen(0, '127.0.0.1');
  await once(plain, 'listening');
  stops.push(async () => plain.close().closeAllConnections());
  const url = `http://127.0.0.1:${(plain.address() as AddressInfo).port}/`;
  const { headers } = newStep().action();
  for (const body of ['{', Buffer.from([0x22, 0xff, 0x22]), `"${'x'.repeat(5_000_000)}"`]) {
    const answer = await fetch(url, { method: 'POST', headers: headers as Record<string, string>, body });
    assert.equal(answer.status, 400);
    assert.equal(answer.headers.get('saga-result'), 'bad-request');
  }
});
