import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import express, { type ErrorRequestHandler, type Express } from 'express';
import { eventually } from '../../../tests/support/eventually.ts';
import {
  newStep,
  openGuardScene,
  type GuardScene,
  type StepCalls,
} from '../../../tests/support/guarded-steps.ts';
import { judgeHttpAnswer, type Answer } from '../../saga/domain/judge-answer.ts';
import { expressHandler } from './express-handler.ts';
import type { GuardRequest } from './guard-call.ts';
import type { Guarded } from './guarded-action.ts';

/** Guarded handlers in a real Express application, and what a saga makes of its answers. */

let scene: GuardScene;
const stops: (() => void)[] = [];
before(async () => void (scene = await openGuardScene()));
after(async () => {
  for (const stop of stops) stop();
  await scene.close();
});

type Order = Readonly<{ sku?: string }> | null;

const action = (during: (order: Order) => void | Promise<void> = () => {}): Guarded =>
  scene.guard.action<Order>(async (tx, { sagaId, body }) => {
    await scene.effect(tx, sagaId, 'action');
    await during(body);
    return { sku: body?.sku ?? null };
  });
const undo = (): Guarded => scene.guard.undo((tx, { sagaId }) => scene.effect(tx, sagaId, 'undo'));

/** It writes no errors to the console. */
const newApp = (): Express => express().set('env', 'test');

async function listen(app: Express): Promise<string> {
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stops.push(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function send(url: string, { headers }: GuardRequest, text: string): Promise<Answer> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { ...(headers as Record<string, string>), 'content-type': 'application/json' },
    body: text,
  });
  const body = Buffer.from(await answer.arrayBuffer());
  const seen = { status: answer.status, headers: Object.fromEntries(answer.headers), body, isBodyCut: false };
  return judgeHttpAnswer(seen, new Date());
}

const classOf = async (...call: Parameters<typeof send>): Promise<string> => (await send(...call)).class;
const shoe = '{"sku":"shoe"}';

const applications: Readonly<Record<string, () => Express>> = {
  'without express.json()': newApp,
  'with express.json()': () => newApp().use(express.json()),
  'with express.json() that takes what sagas send': () =>
    newApp().use(express.json({ strict: false, limit: '4mb' })),
};

for (const [what, open] of Object.entries(applications))
  test(`an application ${what} is understood, also through a mounted router`, async () => {
    const router = express.Router();
    router.post('/action', expressHandler(action()));
    router.post('/undo', expressHandler(undo()));
    const url = await listen(open().use('/inventory/:version', router));
    const step = newStep();
    const first = await send(`${url}/inventory/v1/action`, step.action(), shoe);
    assert.deepEqual(first, { class: 'done', output: { sku: 'shoe' } });
    assert.deepEqual(await send(`${url}/inventory/v1/action`, step.action(), shoe), first);
    assert.equal(await classOf(`${url}/inventory/v1/action`, step.action(), '{"sku":"boot"}'), 'refused');
    assert.equal(await classOf(`${url}/inventory/v1/undo`, step.undo(), '{}'), 'done');
    assert.equal(await classOf(`${url}/inventory/v1/action`, step.action(), shoe), 'refused');
    assert.deepEqual(await scene.effectsOf(step.sagaId), ['action', 'undo']);
  });

test('what express.json() refuses never reaches the guard, and is a defect: nothing was done', async () => {
  const url = await listen(newApp().use(express.json()).post('/', expressHandler(action())));
  const large = JSON.stringify({ sku: 'x'.repeat(110_000) });
  for (const body of ['{', large, 'null']) {
    const step = newStep();
    assert.equal(await classOf(url, step.action(), body), 'defect');
    assert.deepEqual([await scene.effectsOf(step.sagaId), await scene.phaseOf(step.sagaId)], [[], null]);
  }
});

test('without it, and with one that is told so, large bodies and those of sagas without a payload are taken', async () => {
  const large = JSON.stringify({ sku: 'x'.repeat(200_000) });
  for (const app of [newApp(), newApp().use(express.json({ strict: false, limit: '4mb' }))]) {
    const url = await listen(app.post('/', expressHandler(action())));
    for (const body of [large, 'null']) assert.equal(await classOf(url, newStep().action(), body), 'done');
    assert.equal(await classOf(url, newStep().action(), '{'), 'defect');
  }
});

test('an error handler of the application does not hear of a fault in an action, and cannot belittle it', async () => {
  const heard: unknown[] = [];
  const belittle: ErrorRequestHandler = (error, _request, response, _next) => {
    heard.push(error);
    response.status(400).json({ error: 'your fault' });
  };
  const app = newApp().use(express.json());
  app.post('/', expressHandler(action(() => Promise.reject(new Error('the shelf is on fire')))));
  const url = await listen(app.use(belittle));
  const step = newStep();
  assert.equal(await classOf(url, step.action(), shoe), 'unknown');
  assert.deepEqual([heard, await scene.effectsOf(step.sagaId)], [[], []]);
});

/** An action that has begun and does not go on before it is told to. */
function heldAction(): Readonly<{ guarded: Guarded; begun: Promise<void>; goOn: () => void }> {
  const begun = Promise.withResolvers<void>();
  const going = Promise.withResolvers<void>();
  const guarded = action(() => {
    begun.resolve();
    return going.promise;
  });
  return { guarded, begun: begun.promise, goOn: going.resolve };
}

const isDone = (step: StepCalls): Promise<void> =>
  eventually(async () => assert.equal(await scene.phaseOf(step.sagaId), 'done'));

test('a caller that hangs up during the action gets its answer when it asks again', async () => {
  const { guarded, begun, goOn } = heldAction();
  const url = await listen(newApp().use(express.json()).post('/', expressHandler(guarded)));
  const step = newStep();
  const call = new AbortController();
  const hungUp = fetch(url, {
    method: 'POST',
    headers: { ...(step.action().headers as Record<string, string>), 'content-type': 'application/json' },
    body: shoe,
    signal: call.signal,
  });
  await begun;
  call.abort();
  await assert.rejects(hungUp);
  goOn();
  await isDone(step);
  assert.deepEqual(await send(url, step.action(), shoe), { class: 'done', output: { sku: 'shoe' } });
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action']);
});

test('a caller that hangs up in the middle of its body has begun nothing', async () => {
  for (const parsers of [[], [express.json()]]) {
    const entered = Promise.withResolvers<void>();
    const closed = Promise.withResolvers<void>();
    const app = newApp().use((request, _response, next) => {
      request.socket.once('close', () => closed.resolve());
      entered.resolve();
      next();
    });
    for (const parser of parsers) app.use(parser);
    const url = new URL(await listen(app.post('/', expressHandler(action()))));
    const step = newStep();
    const headers = Object.entries(step.action().headers).map(([name, value]) => `${name}: ${String(value)}`);
    const socket = connect(Number(url.port), url.hostname);
    socket.write(
      [
        'POST / HTTP/1.1',
        'host: x',
        'content-type: application/json',
        'content-length: 100',
        ...headers,
        '',
        '{"sku":',
      ].join('\r\n'),
    );
    await entered.promise;
    socket.destroy();
    await closed.promise;
    // The application is still there, and nothing of the call is.
    assert.equal(await classOf(url.href, newStep().action(), shoe), 'done');
    assert.deepEqual([await scene.effectsOf(step.sagaId), await scene.phaseOf(step.sagaId)], [[], null]);
  }
});

test('an answer that the application gives too soon is left alone, and the process lives', async () => {
  const { guarded, begun, goOn } = heldAction();
  const app = newApp().use((_request, response, next) => {
    void begun.then(() => response.headersSent || response.status(503).end('it takes too long'));
    next();
  });
  const url = await listen(app.post('/', expressHandler(guarded)));
  const step = newStep();
  assert.equal(await classOf(url, step.action(), shoe), 'unknown');
  goOn();
  await isDone(step);
  const again = await listen(newApp().post('/', expressHandler(guarded)));
  assert.equal(await classOf(again, step.action(), shoe), 'done');
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action']);
});
