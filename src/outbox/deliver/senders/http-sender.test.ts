import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { httpSettings, outgoingOrder } from '../../../../tests/support/destinations.ts';
import { eventually } from '../../../../tests/support/eventually.ts';
import {
  startPartner,
  type Partner,
  type PartnerAct,
  type PartnerOptions,
} from '../../../../tests/support/partner.ts';
import { onRequest, serveRaw } from '../../../../tests/support/raw-server.ts';
import type { HttpSettings } from '../../domain/destination-settings.ts';
import type { SendOutcome } from '../../domain/order.ts';
import type { OutgoingOrder } from './port.ts';
import { createHttpSender } from './http-sender.ts';

const running = new AbortController().signal;

async function partnerFor(t: TestContext, options: PartnerOptions = {}): Promise<Partner> {
  const partner = await startPartner(options);
  t.after(() => partner.stop());
  return partner;
}

function senderFor(t: TestContext, changes: Partial<HttpSettings> & Readonly<{ url: string }>) {
  const sender = createHttpSender(httpSettings(changes), {
    onError: (error) => assert.fail(error as Error),
  });
  t.after(() => sender.close());
  return async (order: OutgoingOrder = outgoingOrder()): Promise<SendOutcome> => {
    const [outcome] = sender.send([order], running);
    assert.ok(outcome);
    return outcome;
  };
}

test('an order is sent with its key, its trace and the configured headers, and its answer is returned', async (t) => {
  const partner = await partnerFor(t);
  const headers = {
    'X-Api-Key': () => 'one',
    'Content-Type': () => 'application/vnd.api+json',
    'Idempotency-Key': () => 'the same for all',
  };
  const send = senderFor(t, { url: `${partner.url}?v=2`, headers, method: 'PUT' });
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const order = outgoingOrder({ traceparent });
  const outcome = await send(order);
  assert.equal(outcome.end, 'sent');
  assert.match(outcome.answer.outsideId ?? '', /^brk-/);
  const [seen] = partner.requests;
  assert.equal(seen?.body, order.request);
  const { headers: got } = seen;
  assert.deepEqual(
    [got['idempotency-key'], got['traceparent'], got['x-api-key'], got['content-type'], got['user-agent']],
    [order.idempotencyKey, traceparent, 'one', 'application/vnd.api+json', 'redrive'],
  );
});

test('the flat form contains key and trace id, and leaves numbers of the request unchanged', async (t) => {
  const partner = await partnerFor(t);
  const send = senderFor(t, { url: partner.url, body: 'order' });
  const request =
    '{"qty": 12345678901234567890.10, "trace_id": "old", "idempotency_key": "old", "meta": {"a": [1e400]}}';
  await send(outgoingOrder({ idempotencyKey: 'the-key-1', traceId: 'do-outbox-1', request }));
  await send(outgoingOrder({ idempotencyKey: 'the-key-2', request: '{"trace_id":"own"}' }));
  assert.deepEqual(
    partner.requests.map(({ body }) => body),
    [
      '{"qty":12345678901234567890.10,"trace_id":"do-outbox-1","idempotency_key":"the-key-1","meta":{"a":[1e400]}}',
      '{"trace_id":"own","idempotency_key":"the-key-2"}',
    ],
  );
});

test('a request that is not an object is refused unsent in the flat form', async (t) => {
  const partner = await partnerFor(t);
  const send = senderFor(t, { url: partner.url, body: 'order' });
  for (const request of ['[]', '1', 'null', '{']) {
    const outcome = await send(outgoingOrder({ request }));
    assert.equal(outcome.end, 'refused');
  }
  assert.equal(partner.requestCount(), 0);
});

test('a header is read for each send; an unreadable or invalid one fails the order unsent', async (t) => {
  const partner = await partnerFor(t);
  let token: () => string = () => 'Bearer first-secret';
  const send = senderFor(t, { url: partner.url, headers: { Authorization: () => token() } });
  assert.equal((await send()).end, 'sent');
  token = () => {
    throw new Error('no such file: /vault/secrets/token');
  };
  assert.deepEqual(await send(), {
    end: 'failed',
    code: 'UNAUTHORIZED',
    detail: 'not sent: the header Authorization cannot be read: no such file: /vault/secrets/token',
  });
  for (const bad of ['Bearer bad-secret\n', 'bad\r\nx-evil: 1', 'bad\0secret', 'bad-secret-\u20ac']) {
    token = () => bad;
    assert.deepEqual(await send(), {
      end: 'failed',
      code: 'UNAUTHORIZED',
      detail: 'not sent: invalid authorization header',
    });
  }
  token = () => 'Bearer second-secret';
  assert.equal((await send()).end, 'sent');
  assert.deepEqual(
    partner.requests.map(({ headers }) => headers['authorization']),
    ['Bearer first-secret', 'Bearer second-secret'],
  );
});

test('a secret that an answer repeats is removed from the outcome', async (t) => {
  const body = '{"error":"the key sk-very-secret is not valid"}';
  const partner = await partnerFor(t, {
    script: { otherwise: { act: 'status', status: 401, effect: false, body } },
  });
  const send = senderFor(t, { url: partner.url, headers: { authorization: () => 'Bearer sk-very-secret' } });
  assert.deepEqual(await send(), {
    end: 'refused',
    code: 'UNAUTHORIZED',
    detail: 'HTTP 401: {"error":"the key *** is not valid"}',
  });
});

test('every kind of answer has its outcome', async (t) => {
  const partner = await partnerFor(t);
  const send = senderFor(t, {
    url: partner.url,
    conflict: 'processed',
    timeoutMs: 300,
    maxResponseBytes: 1000,
  });
  const told = async (act: Parameters<Partner['setScript']>[0]): Promise<string> => {
    partner.setScript(act);
    const outcome = await send();
    return 'code' in outcome ? `${outcome.end} ${outcome.code}` : outcome.end;
  };
  assert.equal(await told(() => ({ act: 'ok' })), 'sent');
  assert.equal(await told(() => ({ act: 'empty' })), 'sent');
  assert.equal(await told(() => ({ act: 'wrong_key' })), 'unknown UNKNOWN');
  assert.equal(await told(() => ({ act: 'hang', effect: true })), 'unknown NETWORK_TIMEOUT');
  for (const when of ['before_effect', 'before_answer', 'mid_answer'] as const)
    for (const by of ['rst', 'fin'] as const)
      assert.equal(await told(() => ({ act: 'reset', when, by })), 'unknown NETWORK_TIMEOUT');
  assert.equal(await told(() => ({ act: 'status', status: 500, effect: true })), 'unknown BROKER_5XX');
  assert.equal(await told(() => ({ act: 'status', status: 400, effect: false })), 'refused BAD_REQUEST');
  assert.equal(await told(() => ({ act: 'later', status: 429, afterS: 1 })), 'limited');
  assert.equal(
    await told(() => ({ act: 'later', status: 503, afterS: 1, form: 'date' })),
    'failed BROKER_5XX',
  );
  assert.equal(await told(() => ({ act: 'conflict', kind: 'processed' })), 'sent');
  assert.equal(await told(() => ({ act: 'garbage', effect: true })), 'unknown NETWORK_TIMEOUT');
  assert.equal(await told(() => ({ act: 'endless_body', effect: true })), 'unknown NETWORK_TIMEOUT');
  assert.equal(await told(() => ({ act: 'huge_body', effect: true, bytes: 9_000_000 })), 'unknown UNKNOWN');
  assert.equal(await told(() => ({ act: 'redirect' })), 'refused BAD_REQUEST');
});

test('with `response: any` a 2xx counts even if its body is cut off, never ends or is too large', async (t) => {
  const partner = await partnerFor(t);
  const send = senderFor(t, { url: partner.url, response: 'any', timeoutMs: 300, maxResponseBytes: 1000 });
  for (const act of [
    { act: 'reset', when: 'mid_answer' },
    { act: 'endless_body', effect: true },
    { act: 'huge_body', effect: true, bytes: 9_000_000 },
  ] as const) {
    partner.setScript({ otherwise: act });
    assert.equal((await send()).end, 'sent', act.act);
  }
});

test('a refusal with a broken body is still a refusal', async (t) => {
  const server = await serveRaw(t, (socket) =>
    onRequest(socket, () => socket.end('HTTP/1.1 400 No\r\ncontent-length: 9\r\n\r\n{"err')),
  );
  assert.deepEqual(await senderFor(t, { url: server.url })(), {
    end: 'refused',
    code: 'BAD_REQUEST',
    detail: 'HTTP 400: {"err',
  });
});

test('on shutdown, unsent orders are released and sent ones run to their end', async (t) => {
  const partner = await partnerFor(t, { script: { otherwise: { act: 'hold' } } });
  const sender = createHttpSender(httpSettings({ url: partner.url, maxInFlight: 1 }));
  const stopping = new AbortController();
  const [first, ...waiting] = sender.send(
    Array.from({ length: 3 }, () => outgoingOrder()),
    stopping.signal,
  );
  await eventually(() => assert.equal(partner.requestCount(), 1), { everyMs: 2 });
  stopping.abort();
  const released = { end: 'released', reason: 'shutting down' };
  assert.deepEqual(await Promise.all(waiting), [released, released]);
  assert.deepEqual(await Promise.all(sender.send([outgoingOrder()], stopping.signal)), [released]);
  const closed = sender.close();
  assert.deepEqual(await Promise.all(sender.send([outgoingOrder()], running)), [released]);
  partner.release();
  assert.equal((await first)?.end, 'sent');
  await closed;
  assert.equal(partner.requestCount(), 1);
  assert.deepEqual(await Promise.all(sender.send([outgoingOrder()], running)), [released]);
});

test('waiting for a connection counts towards the timeout, and the order is not sent later', async (t) => {
  const partner = await partnerFor(t, { script: { otherwise: { act: 'hang', effect: true } } });
  const sender = createHttpSender(httpSettings({ url: partner.url, maxInFlight: 1, timeoutMs: 200 }));
  const startedAtMs = performance.now();
  const outcomes = await Promise.all(
    sender.send(
      Array.from({ length: 3 }, () => outgoingOrder()),
      running,
    ),
  );
  assert.ok(performance.now() - startedAtMs < 1500);
  assert.deepEqual(
    outcomes.map((outcome) => ('detail' in outcome ? `${outcome.end}: ${outcome.detail}` : outcome.end)),
    [
      'unknown: no complete answer within 200 ms',
      'failed: no connection within 200 ms',
      'failed: no connection within 200 ms',
    ],
  );
  await sender.close();
  assert.equal(partner.requestCount(), 1);
});

test('a destination without idempotency gets a new connection per order, others share them', async (t) => {
  const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}';
  for (const [idempotency, expected] of [
    ['none', 5],
    ['enforced', 1],
  ] as const) {
    const server = await serveRaw(t, (socket) => onRequest(socket, () => socket.write(ok)));
    const send = senderFor(t, { url: server.url, idempotency, maxInFlight: 1 });
    for (let i = 0; i < 5; i++) assert.equal((await send()).end, 'sent');
    assert.equal(server.connections(), expected);
  }
});

test('a server that closes an idle connection puts no order in doubt if it could not be sent again', async (t) => {
  const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}';
  for (const [idempotency, second] of [
    ['none', 'sent'],
    ['enforced', 'unknown'],
  ] as const) {
    const server = await serveRaw(t, (socket) =>
      onRequest(socket, (nth) => (nth === 1 ? socket.write(ok) : socket.resetAndDestroy())),
    );
    const send = senderFor(t, { url: server.url, idempotency, maxInFlight: 1 });
    assert.deepEqual([(await send()).end, (await send()).end], ['sent', second]);
  }
});

test('thousands of parallel orders are each sent once, over at most the allowed connections', async (t) => {
  const partner = await partnerFor(t);
  const orders = Array.from({ length: 3000 }, () => outgoingOrder());
  const sender = createHttpSender(httpSettings({ url: partner.url, maxInFlight: 32, timeoutMs: 60_000 }));
  const outcomes = await Promise.all(sender.send(orders, running));
  await sender.close();
  assert.ok(outcomes.every(({ end }) => end === 'sent'));
  assert.deepEqual([partner.ledger.keys(), partner.ledger.effects()], [3000, 3000]);
});

test('whatever happens, sent means an effect, and failed, refused and released mean none', async (t) => {
  const acts: readonly PartnerAct[] = [
    { act: 'empty' },
    { act: 'wrong_key' },
    { act: 'reset', when: 'before_effect' },
    { act: 'reset', when: 'before_answer', by: 'fin' },
    { act: 'reset', when: 'mid_answer' },
    { act: 'hang', effect: true },
    { act: 'hang', effect: false },
    { act: 'status', status: 500, effect: true },
    { act: 'status', status: 502, effect: false },
    { act: 'later', status: 429, afterS: 1 },
    { act: 'later', status: 503 },
    { act: 'conflict', kind: 'processed' },
    { act: 'conflict', kind: 'running' },
    { act: 'garbage', effect: true },
    { act: 'endless_body', effect: true },
    { act: 'huge_body', effect: true, bytes: 100_000 },
    { act: 'redirect' },
  ];
  const rules = acts.map((does, index) => ({ does, chance: 1 / (acts.length - index + 1) }));
  const partner = await partnerFor(t, { script: { rules, seed: 42 } });
  const conflict = { in: { field: 'code' }, processed: ['already_processed'], running: ['in_progress'] };
  const settings = httpSettings({ url: partner.url, conflict, timeoutMs: 400, maxInFlight: 200 });
  const sender = createHttpSender(settings);
  t.after(() => sender.close());
  const orders = Array.from({ length: 400 }, (_, i) => outgoingOrder({ idempotencyKey: `random-${i}` }));
  const outcomes: SendOutcome[] = [];
  for (let i = 0; i < orders.length; i += 200)
    outcomes.push(...(await Promise.all(sender.send(orders.slice(i, i + 200), running))));
  const claims: Readonly<Record<string, boolean>> = {
    sent: true,
    failed: false,
    limited: false,
    refused: false,
  };
  for (const [i, outcome] of outcomes.entries()) {
    const hadEffect = partner.ledger.get(`random-${i}`) !== undefined;
    assert.equal(hadEffect, claims[outcome.end] ?? hadEffect, `random-${i}: ${JSON.stringify(outcome)}`);
  }
  assert.deepEqual(new Set(outcomes.map(({ end }) => end)).size, 5);
});

test('an internal error leaves the order in doubt and is reported, not thrown', async (t) => {
  const partner = await partnerFor(t);
  const reported: unknown[] = [];
  const broken = { ...httpSettings({ url: partner.url }), outsideIdField: null as unknown as string };
  const sender = createHttpSender(broken, { onError: (error) => reported.push(error) });
  t.after(() => sender.close());
  const [outcome] = await Promise.all(sender.send([outgoingOrder()], running));
  assert.equal(outcome?.end, 'unknown');
  assert.equal(reported.length, 1);
});
