import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import * as fc from 'fast-check';
import { assertError, type RawRequest } from '../../tests/support/api-client.ts';
import { hostileBodies, hostileSegments } from '../../tests/support/hostile-input.ts';
import { dead } from '../../tests/support/outbox-orders.ts';
import { root, startOutboxApi, type OutboxApi } from '../../tests/support/outbox-api.ts';
import { sql } from '../platform/postgres/sql.ts';

/** Whatever is sent, the answer is a documented error in the common format, and nothing has changed. */

const key = 'hostile-key';
const json = { 'content-type': 'application/json', 'idempotency-key': key };

let outbox: OutboxApi;
let id: bigint;
before(async () => {
  outbox = await startOutboxApi();
  id = await outbox.placed();
  await outbox.attempt(id, dead);
});
after(() => outbox.drop());

async function tables(): Promise<unknown> {
  return outbox.db.query(sql`
    SELECT (SELECT md5(string_agg(t::text, '|' ORDER BY t.id)) FROM outbox.outbox_orders t) AS orders,
           (SELECT md5(string_agg(t::text, '|' ORDER BY t.outbox_id)) FROM outbox.idempo_ledger t) AS ledger,
           (SELECT md5(string_agg(t::text, '|' ORDER BY t.id)) FROM outbox.outbox_audit t) AS audit`);
}

async function refused(request: RawRequest, status: number, code?: string): Promise<void> {
  const before = await tables();
  assertError(await outbox.api.raw(request), status, code);
  assert.deepEqual(await tables(), before);
}

const correction = `{"idempotency_key":"${key}","request":{}}`;
const idRoutes: readonly Readonly<{ method: string; suffix: string; body?: string }>[] = [
  { method: 'GET', suffix: '' },
  { method: 'POST', suffix: '/cancel' },
  { method: 'POST', suffix: '/skip', body: '{}' },
  { method: 'POST', suffix: '/supersede', body: correction },
];

describe('an invalid id', () => {
  const segments = [
    ...hostileSegments,
    '0',
    '01',
    '+1',
    '1.0',
    '1e3',
    '0x1',
    '9223372036854775808',
    '1'.repeat(400),
  ];
  for (const { method, suffix, body } of idRoutes)
    test(`${method} /orders/…${suffix} refuses it`, async () => {
      for (const segment of segments) {
        const path = `${root}/orders/${segment}${suffix}`;
        await refused({ method, path, headers: json, ...(body === undefined ? {} : { body }) }, 400);
      }
    });

  for (const { method, suffix, body } of idRoutes)
    test(`${method} /orders/…${suffix} does not find an unknown one`, async () => {
      const path = `${root}/orders/9223372036854775807${suffix}`;
      const request = { method, path, headers: json, ...(body === undefined ? {} : { body }) };
      await refused(request, 404, 'SYS_OUTBOX_NOT_FOUND');
    });
});

describe('an invalid key', () => {
  test('the ledger refuses it, or does not find it', async () => {
    for (const segment of hostileSegments) {
      const answer = await outbox.api.raw({ method: 'GET', path: `${root}/ledger/${segment}` });
      assert.ok([400, 404].includes(answer.status), `${segment}: ${answer.text}`);
      assertError(answer, answer.status);
    }
  });
});

describe('an invalid body', () => {
  for (const action of ['cancel', 'skip', 'supersede'])
    for (const { name, body } of hostileBodies)
      test(`${action} refuses ${name}`, () =>
        refused(
          { method: 'POST', path: `${root}/orders/${id}/${action}`, headers: json, body },
          400,
          'SYS_OUTBOX_VALIDATION_ERROR',
        ));

  for (const { name, body } of hostileBodies)
    test(`an order is not ${name}`, () =>
      refused(
        { method: 'POST', path: `${root}/orders`, headers: json, body },
        400,
        'SYS_OUTBOX_VALIDATION_ERROR',
      ));

  const member = `"destination":"warehouse","idempotency_key":"${key}"`;
  for (const body of [
    `{${member}}`,
    `{${member},"request":null}`,
    `{${member},"request":[]}`,
    `{${member},"request":"{}"}`,
    `{${member},"request":{},"request":{}}`,
    `{${member},"idempotency_key":"${key}","request":{}}`,
    `{${member},"request":{"a":1,"a":1}}`,
    `{${member},"request":{"a":9007199254740993}}`,
    `{${member},"request":{"a":1e999}}`,
    `{${member},"request":{"a":0.12345678901234567890}}`,
    `{${member},"request":{"a":"\\u0000"}}`,
    `{${member},"request":{"\\u0000":1}}`,
    `{${member},"request":{"a":"\\ud800"}}`,
    `{${member},"request":{"__proto__":{}}}`,
    `{${member},"request":{"a":${'['.repeat(600)}${']'.repeat(600)}}}`,
    `{${member},"request":{},"ordering_key":""}`,
    `{${member},"request":{},"ordering_key":null}`,
    `{${member},"request":{},"ordering_key":"${'k'.repeat(256)}"}`,
    `{${member},"request":{},"ordering_key":"a\\u0301${'\\u0301'.repeat(5000)}"}`,
    `{${member},"request":{},"trace_id":7}`,
    `{${member},"request":{},"trace_id":"${'t'.repeat(256)}"}`,
    `{${member},"request":{},"actor":"root"}`,
    `{${member},"request":{},"status":"sent"}`,
    `{"destination":"warehouse","request":{}}`,
    `{"destination":7,"idempotency_key":"${key}","request":{}}`,
    `{"destination":"","idempotency_key":"${key}","request":{}}`,
    `{"destination":"${'d'.repeat(256)}","idempotency_key":"${key}","request":{}}`,
  ])
    test(`no order is placed by ${body.slice(0, 120)}`, () =>
      refused(
        { method: 'POST', path: `${root}/orders`, headers: json, body },
        400,
        'SYS_OUTBOX_VALIDATION_ERROR',
      ));

  for (const [action, body] of [
    ['cancel', '{"effect_checked":false,"effect_checked":true}'],
    ['skip', '{"effect_checked":false,"effect_checked":true}'],
    ['skip', '{"effect_checked":"true"}'],
    ['skip', '{"effect_checked":1}'],
    ['supersede', `{"idempotency_key":"${key}","request":{"a":1,"a":2}}`],
    ['supersede', `{"idempotency_key":"${key}","request":{"a":9007199254740993}}`],
    ['supersede', `{"idempotency_key":"${key}","request":{},"destination":"broker"}`],
    ['supersede', `{"idempotency_key":"${key}","request":{},"ordering_key":"k"}`],
    ['supersede', `{"request":{}}`],
  ])
    test(`${action} refuses ${body}`, () =>
      refused(
        { method: 'POST', path: `${root}/orders/${id}/${action}`, headers: json, body: body ?? '' },
        400,
        'SYS_OUTBOX_VALIDATION_ERROR',
      ));

  test('a key that is too short, too long or not visible ASCII is refused', async () => {
    for (const bad of ['', 'short', 'x'.repeat(65), 'with a blank', 'kéy-with-accent', 'tab\\there']) {
      const body = `{"destination":"warehouse","idempotency_key":"${bad}","request":{}}`;
      await refused({ method: 'POST', path: `${root}/orders`, headers: json, body }, 400);
    }
  });

  test('a body over the limit is 413, and one without a JSON content type is 415', async () => {
    const path = `${root}/orders`;
    const huge = `{${member},"request":{"a":"${'x'.repeat(1_100_000)}"}}`;
    await refused({ method: 'POST', path, headers: json, body: huge }, 413);
    for (const type of ['text/plain', 'multipart/form-data', 'x', '/'])
      await refused(
        { method: 'POST', path, headers: { ...json, 'content-type': type }, body: correction },
        415,
      );
  });
});

describe('an invalid query', () => {
  for (const query of [
    'status=QUEUED',
    'status=',
    'status=queued&status=sold',
    'destination=a&destination=b',
    'error_code=unknown',
    'error_code=UNKNOWN&error_code=X',
    'destination=',
    `destination=${'d'.repeat(256)}`,
    'destination=%00',
    'idempotency_key=',
    'idempotency_key=a%00b',
    'in_doubt=maybe',
    'held=0',
    'needs_attention=1',
    'needs_attention=',
    'page=0',
    'page=1000001',
    'page_size=0',
    'page_size=101',
    'cursor=x',
    'cursor=WzEsInhdIl0',
    `cursor=${'A'.repeat(1025)}`,
    'colour=red',
    'created_from=',
    'created_from=yesterday',
    'created_from=2026-01-01',
    'created_from=2026-01-01T00:00:00',
    'created_from=2026-02-30T00:00:00Z',
    'created_from=2026-13-01T00:00:00Z',
    'created_from=0000-01-01T00:00:00Z',
    'created_to=0001-01-01T00:00:00%2B23:59',
    'created_to=9999-12-31T23:59:59-23:59',
    'created_to=2026-01-01T25:00:00Z',
    'created_to=2026-01-01T00:00:00%2B99:00',
    'created_to=1767225600000',
    'created_to=infinity',
    `created_to=2026-01-01T00:00:00.${'1'.repeat(30)}Z`,
  ])
    test(`the list refuses ${query.slice(0, 60)}`, () =>
      refused({ method: 'GET', path: `${root}/orders?${query}` }, 400, 'SYS_OUTBOX_VALIDATION_ERROR'));

  test('other routes take no query', async () => {
    for (const path of ['destinations', `orders/${id}`, `ledger/${key}`])
      await refused({ method: 'GET', path: `${root}/${path}?x=1` }, 400);
  });
});

test('any JSON request is accepted or refused, and an accepted one is returned unchanged', async () => {
  let made = 0;
  const request = fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue({ stringUnit: 'binary' }));
  await fc.assert(
    fc.asyncProperty(request, async (request) => {
      const idempotency_key = `fuzz-key-${(made += 1)}`;
      const answer = await outbox.place({ destination: 'warehouse', idempotency_key, request });
      assert.ok([201, 400].includes(answer.status), answer.text);
      if (answer.status === 400) return;
      const { body } = await outbox.api.get<{ request: unknown }>(`${root}/orders/${answer.body.id}`);
      assert.deepEqual(body.request, JSON.parse(JSON.stringify(request)));
    }),
    { numRuns: 150 },
  );
});

test('every accepted time can be stored', async () => {
  const two = (max: number) => fc.integer({ min: 0, max }).map((n) => String(n).padStart(2, '0'));
  const time = fc
    .tuple(
      fc.integer({ min: 0, max: 9999 }),
      two(14),
      two(33),
      two(26),
      two(61),
      fc.constantFrom('Z', '+', '-'),
      two(24),
    )
    .map(([year, month, day, hour, minute, sign, zone]) => {
      const offset = sign === 'Z' ? 'Z' : `${sign}${zone}:${minute}`;
      return `${String(year).padStart(4, '0')}-${month}-${day}T${hour}:${minute}:00${offset}`;
    });
  await fc.assert(
    fc.asyncProperty(time, time, async (from, to) => {
      const query = new URLSearchParams({ created_from: from, created_to: to });
      const answer = await outbox.api.get(`${root}/orders?${query.toString()}`);
      assert.ok([200, 400].includes(answer.status), `${from} ${to}: ${answer.text}`);
    }),
    { numRuns: 150 },
  );
});
