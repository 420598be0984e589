import assert from 'node:assert/strict';
import { test } from 'node:test';
import { context, INVALID_SPAN_CONTEXT, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import type { Context, ContextManager, SpanContext } from '@opentelemetry/api';
import { outbox, type NewOrder, type Transaction } from './index.ts';

/** What is refused is refused before anything is asked, so no transaction can suffer from it. */
const untouched: Transaction = { query: () => assert.fail('the database was asked') };

const order: NewOrder = { destination: 'broker', idempotencyKey: 'order-0001', request: { qty: 1 } };

async function assertRefused(fields: Readonly<Record<string, unknown>>, reason: RegExp): Promise<void> {
  const added = await outbox.add(untouched, { ...order, ...fields });
  assert.equal(added.outcome, 'refused');
  assert.equal(added.id, null);
  assert.match(added.reason, reason);
}

const cyclic: Record<string, unknown> = { name: 'cycle' };
cyclic['self'] = cyclic;
const deep = (levels: number): object => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`);

const unstorable: readonly (readonly [what: string, request: unknown, reason: RegExp])[] = [
  ['undefined', undefined, /request is not an object/],
  ['null', null, /request is not an object/],
  ['a text', '{}', /request is not an object/],
  ['a list', [1], /request is not an object/],
  ['a function', () => 1, /holds a function/],
  ['NaN', { qty: Number.NaN }, /holds NaN at "qty", which JSON cannot/],
  ['Infinity', { a: [1, -Infinity] }, /holds -Infinity at "1"/],
  ['a boxed NaN', { qty: Object(Number.NaN) as unknown }, /holds NaN at "qty"/],
  ['a bigint', { qty: 10n }, /holds a bigint at "qty"/],
  ['a function inside', { run() {} }, /holds a function at "run"/],
  ['a symbol', { a: Symbol('s') }, /holds a symbol at "a"/],
  ['undefined in a list', { a: [undefined] }, /holds undefined at "0"/],
  ['a Map', { a: new Map([[1, 2]]) }, /holds a Map at "a"/],
  ['a Set', { a: new Set([1]) }, /holds a Set at "a"/],
  ['a promise', { a: Promise.resolve(1) }, /holds a Promise at "a"/],
  ['a date that is none', { at: new Date('nonsense') }, /holds an invalid date at "at"/],
  ['a cycle', cyclic, /circular/i],
  ['NUL in a text', { a: 'x\0y' }, /request\.a|NUL/],
  ['NUL in a name', { 'x\0y': 1 }, /NUL/],
  ['a lone surrogate', { a: ['\ud800'] }, /lone surrogate/],
  ['a prototype', JSON.parse('{"__proto__":{"a":1}}'), /must not be used as a name/],
  ['a number that no double is', { qty: rawNumber('0.1000000000000000001') }, /qty .*double/],
  ['too much', { text: 'x'.repeat(1_048_576) }, /larger than 1048576 bytes/],
  [
    'short numbers that PostgreSQL writes as long ones',
    { n: Array(60_000).fill(1e308) },
    /takes 1\d{7} bytes as PostgreSQL writes it; at most 16777216/,
  ],
  ['600 levels', deep(600), /512 levels/],
  ['a million levels', deepObject(1_000_000), /./],
  ['a toJSON that throws', { toJSON: () => assert.fail('no form') }, /no form/],
];

function rawNumber(digits: string): object {
  return (JSON as unknown as { rawJSON(text: string): object }).rawJSON(digits);
}

function deepObject(levels: number): object {
  let object = {};
  for (let i = 0; i < levels; i += 1) object = { a: object };
  return object;
}

for (const [what, request, reason] of unstorable)
  test(`a request that is or holds ${what} is refused`, () => assertRefused({ request }, reason));

const wrongFields: readonly (readonly [what: string, fields: Record<string, unknown>, reason: RegExp])[] = [
  ['no destination', { destination: undefined }, /destination/],
  ['an empty destination', { destination: '' }, /destination/],
  ['a destination without end', { destination: 'd'.repeat(101) }, /destination is longer than 100/],
  ['an internal destination', { destination: '_saga_events' }, /destination/],
  [
    'a destination that no configuration can name',
    { destination: 'Bad Name' },
    /destination is not a valid name/,
  ],
  ['a destination with NUL', { destination: 'a\0b' }, /destination/],
  ['a short key', { idempotencyKey: 'short' }, /idempotencyKey .* 8 to 64/],
  ['a long key', { idempotencyKey: 'k'.repeat(65) }, /idempotencyKey/],
  ['a key with a space', { idempotencyKey: 'key with space' }, /idempotencyKey/],
  ['a key that is a number', { idempotencyKey: 12_345_678 }, /idempotencyKey/],
  ['an ordering key that is a number', { orderingKey: 7 }, /orderingKey/],
  ['an ordering key with a lone surrogate', { orderingKey: '\udfff' }, /orderingKey/],
  ['an ordering key without end', { orderingKey: 'k'.repeat(5000) }, /orderingKey/],
  ['a trace id with NUL', { traceId: 'a\0b' }, /traceId/],
];

for (const [what, fields, reason] of wrongFields)
  test(`${what} is refused`, () => assertRefused(fields, reason));

const wrongClients: readonly (readonly [what: string, client: () => unknown, error: RegExp])[] = [
  ['nothing', () => undefined, /tx is no client with query\(text, values\)/],
  ['null', () => null, /tx is no client/],
  ['an order', () => order, /tx is no client/],
  [
    'a client that answers with a list',
    () => ({ query: async () => [[], []] }),
    /did not answer with \{ rows/,
  ],
  ['a client that answers with nothing', () => ({ query: async () => undefined }), /did not answer with/],
];

for (const [what, client, error] of wrongClients)
  test(`${what} instead of a client is told in words`, async () => {
    await assert.rejects(outbox.add(client() as Transaction, order), { name: 'TypeError', message: error });
  });

const traceId = '0af7651916cd43dd8448eb211c80319c';
const active = `00-${traceId}-b7ad6b7169203331-01`;
const given = `00-${traceId}-00f067aa0ba902b7-00`;

test('the send belongs below the given span, else below the active one', async () => {
  const span = { traceId, spanId: 'b7ad6b7169203331', traceFlags: 1 };
  assert.ok((await sentBelow(span, order)).includes(active));
  assert.ok((await sentBelow(span, { ...order, traceparent: given })).includes(given));
});

test('a span that nobody records is none', async () => {
  const values = await sentBelow(INVALID_SPAN_CONTEXT, { ...order, orderingKey: 'account-7', traceId: 't' });
  assert.equal(values.filter((value) => value === null).length, 1);
});

async function sentBelow(span: SpanContext, added: NewOrder): Promise<readonly unknown[]> {
  context.setGlobalContextManager(alwaysIn(trace.setSpanContext(ROOT_CONTEXT, span)));
  try {
    return await sentValues(added);
  } finally {
    context.disable();
  }
}

test('a traceparent that is none is left out, and so is one where nothing is traced', async () => {
  for (const traceparent of ['nonsense\0', `00-${'0'.repeat(32)}-b7ad6b7169203331-01`, undefined]) {
    const values = await sentValues({ ...order, orderingKey: 'account-7', traceId: 't', traceparent });
    assert.equal(values.filter((value) => value === null).length, 1, traceparent);
  }
});

/** What the statement that adds the order is given. */
async function sentValues(added: NewOrder): Promise<readonly unknown[]> {
  let sent: readonly unknown[] = [];
  const recording: Transaction = {
    async query(_text, values) {
      sent = values;
      return { rows: [{ id: '1', outcome: 'created' }] };
    },
  };
  assert.deepEqual(await outbox.add(recording, added), { outcome: 'created', id: 1n });
  return sent;
}

function alwaysIn(active: Context): ContextManager {
  const manager: ContextManager = {
    active: () => active,
    with: (_context, work, self, ...args) => work.call(self as never, ...args),
    bind: (_context, target) => target,
    enable: () => manager,
    disable: () => manager,
  };
  return manager;
}
