import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  httpSettings,
  kafkaSettings,
  outgoingOrder,
  smtpSettings,
} from '../../../../tests/support/destinations.ts';
import { startPartner } from '../../../../tests/support/partner.ts';
import { openDestination } from './open-destination.ts';

const backoff = { initialMs: 2000, maxMs: 256_000, jitter: 0.1 };
const deps = { broker: null, retryMax: 8, backoff };
const running = new AbortController().signal;

test('an HTTP destination has the idempotency of its settings, others that of their consumers', () => {
  const settings = [
    httpSettings({ url: 'http://127.0.0.1:1/', idempotency: 'enforced', dedupWindowMs: 5 }),
    httpSettings({ url: 'http://127.0.0.1:1/', idempotency: 'none' }),
    kafkaSettings({ topic: 'orders.events.v1' }),
    smtpSettings({ port: 25 }),
  ];
  const destinations = settings.map((one) => openDestination(one, deps));
  assert.deepEqual(
    destinations.map(({ type, policy }) => [type, policy.idempotency]),
    [
      ['http', 'enforced'],
      ['http', 'none'],
      ['kafka', 'consumer'],
      ['smtp', 'consumer'],
    ],
  );
  const { maxAgeMs } = settings[0] ?? {};
  assert.deepEqual(destinations[0]?.policy, {
    idempotency: 'enforced',
    dedupWindowMs: 5,
    retryMax: 8,
    backoff,
    maxAgeMs,
  });
});

test('only a destination with a status URL can be asked, which doubles its timeout', () => {
  const url = 'http://127.0.0.1:1/';
  const mute = openDestination(httpSettings({ url, timeoutMs: 700 }), deps);
  assert.deepEqual([mute.askStatus, mute.timeoutMs], [null, 700]);
  const telling = openDestination(httpSettings({ url, timeoutMs: 700, statusUrl: `${url}{key}` }), deps);
  assert.deepEqual([typeof telling.askStatus, telling.timeoutMs], ['function', 1400]);
});

test('requests are validated by the schema, and all are valid without one', () => {
  const url = 'http://127.0.0.1:1/';
  assert.deepEqual(openDestination(httpSettings({ url }), deps).flawsOf({ anything: 1 }), []);
  const strict = openDestination(httpSettings({ url, schema: { required: ['qty'] } }), deps);
  assert.deepEqual(
    strict.flawsOf({}).map(({ field }) => field),
    ['request.qty'],
  );
  assert.throws(() => openDestination(httpSettings({ url, schema: { type: 'x' } }), deps));
});

test('an order is sent, its status can be asked, and closing leaves no connection open', async (t) => {
  const partner = await startPartner();
  t.after(() => partner.stop());
  const { url, statusUrl } = partner;
  const destination = openDestination(httpSettings({ url, statusUrl }), { ...deps, isInternal: true });
  assert.deepEqual([destination.name, destination.isInternal], ['broker', true]);
  const order = outgoingOrder();
  assert.deepEqual(await destination.askStatus?.(order.idempotencyKey), { known: 'absent' });
  const [outcome] = await Promise.all(destination.send([order], running));
  assert.equal(outcome?.end, 'sent');
  assert.equal((await destination.askStatus?.(order.idempotencyKey))?.known, 'done');
  await destination.close();
  assert.equal((await destination.send([order], running)[0])?.end, 'released');
});

test('orders to a topic wait while Kafka is disabled', async () => {
  const destination = openDestination(kafkaSettings({ topic: 'orders.events.v1' }), deps);
  const [outcome] = await Promise.all(destination.send([outgoingOrder()], running));
  assert.equal(outcome?.end, 'released');
  await destination.close();
});
