import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertError, sortedStatuses } from '../../../tests/support/api-client.ts';
import { sent } from '../../../tests/support/outbox-orders.ts';
import { anOrder, newKey, root, startOutboxApi, type OutboxApi } from '../../../tests/support/outbox-api.ts';
import { sql } from '../../platform/postgres/sql.ts';

let outbox: OutboxApi;
before(async () => void (outbox = await startOutboxApi()));
after(() => outbox.drop());

const countOf = async (key: string): Promise<bigint | undefined> => {
  const [row] = await outbox.db.query<{ count: bigint }>(sql`
    SELECT (SELECT count(*) FROM outbox.outbox_orders WHERE idempotency_key = ${key})
         + (SELECT count(*) FROM outbox.idempo_ledger WHERE idempotency_key = ${key}) AS count`);
  return row?.count;
};

describe('adding an order', () => {
  test('the first request is 201, and a repeated one is 200 with the same body', async () => {
    const body = { destination: 'broker', idempotency_key: newKey(), request: anOrder };
    const first = await outbox.place(body);
    assert.equal(first.status, 201, first.text);
    assert.equal(first.headers.get('idempotent-replayed'), null);
    assert.equal(first.body.status, 'queued');
    assert.match(first.body.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/);

    const again = await outbox.place(body);
    assert.equal(again.status, 200);
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    assert.equal(again.text, first.text);
    assert.equal(await countOf(body.idempotency_key), 2n);
  });

  test('the first answer is repeated after the order was sent', async () => {
    const body = { destination: 'warehouse', idempotency_key: newKey(), request: { a: 1 } };
    const first = await outbox.place(body);
    await outbox.attempt(BigInt(first.body.id), sent);
    assert.equal((await outbox.place(body)).text, first.text);
  });

  test('ten parallel requests with one key add one order', async () => {
    const body = { destination: 'broker', idempotency_key: newKey(), request: anOrder };
    const answers = await Promise.all(Array.from({ length: 10 }, () => outbox.place(body)));
    assert.deepEqual(sortedStatuses(answers), [...Array.from({ length: 9 }, () => 200), 201]);
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    assert.equal(await countOf(body.idempotency_key), 2n);
  });

  test('a repeated request may write numbers differently and have another trace id and key', async () => {
    const key = newKey();
    const post = (request: string) =>
      outbox.api.raw({
        method: 'POST',
        path: `${root}/orders`,
        headers: { 'content-type': 'application/json', 'idempotency-key': key },
        body: `{"destination":"warehouse","idempotency_key":"${key}","request":${request}}`,
      });
    assert.equal((await post('{"qty":10000,"n":{"b":1,"a":1e2},"trace_id":"t-1"}')).status, 201);
    assert.equal((await post('{"n":{"a":100,"b":1.0},"qty":10000.0,"idempotency_key":"x"}')).status, 200);
  });

  test('the same key with another request, ordering key or destination is refused and changes nothing', async () => {
    const body = {
      destination: 'warehouse',
      idempotency_key: newKey(),
      request: { a: 1 },
      ordering_key: 'k',
    };
    const first = await outbox.place(body);
    for (const other of [
      { ...body, request: { a: 2 } },
      { ...body, ordering_key: 'other' },
      { destination: body.destination, idempotency_key: body.idempotency_key, request: body.request },
      { ...body, destination: 'broker', request: anOrder },
    ])
      assertError(await outbox.place(other), 422, 'SYS_OUTBOX_IDEMPOTENCY_MISMATCH');
    assert.equal((await outbox.place(body)).text, first.text);
  });

  test('a key that another transaction is storing is busy', async () => {
    const body = { destination: 'warehouse', idempotency_key: newKey(), request: { a: 1 } };
    await outbox.db.transaction(async (tx) => {
      await tx.query(sql`
        INSERT INTO outbox.idempo_ledger (idempotency_key, request_digest, outbox_id, http_status, response_payload)
        VALUES (${body.idempotency_key}, 'sha256:other', 0, 201, '{}')`);
      const answer = await outbox.place(body);
      assertError(answer, 409, 'SYS_OUTBOX_BUSY');
      assert.equal(answer.headers.get('retry-after'), '1');
      await tx.query(sql`DELETE FROM outbox.idempo_ledger WHERE idempotency_key = ${body.idempotency_key}`);
    });
    assert.equal((await outbox.place(body)).status, 201);
  });

  test('trace id and traceparent are stored with the order', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const place = async (more: object, headers = {}) => {
      const key = newKey();
      const body = {
        destination: 'warehouse',
        idempotency_key: key,
        request: { trace_id: 'inside' },
        ...more,
      };
      const { body: accepted } = await outbox.place(body, { 'idempotency-key': key, ...headers });
      const { body: order } = await outbox.api.get<{ trace_id: string | null; traceparent: string | null }>(
        `${root}/orders/${accepted.id}`,
      );
      return [order.trace_id, order.traceparent];
    };
    assert.deepEqual(await place({ trace_id: 'outside' }, { traceparent }), ['outside', traceparent]);
    assert.deepEqual(await place({}, { traceparent: 'nonsense' }), ['inside', null]);
    assert.deepEqual(await place({ request: { trace_id: 7 } }), [null, null]);
    assert.deepEqual(await place({ request: { trace_id: 'x'.repeat(256) } }), [null, null]);
  });

  test('the audit log names the actor', async () => {
    const key = newKey();
    const { body } = await outbox.place(
      { destination: 'warehouse', idempotency_key: key, request: {} },
      { 'idempotency-key': key, 'x-actor': 'alice' },
    );
    const [entry] = await outbox.db.query<{ actor: string }>(sql`
      SELECT actor FROM outbox.outbox_audit WHERE outbox_id = ${body.id}`);
    assert.equal(entry?.actor, 'alice');
  });
});

describe('a refused order', () => {
  test('a missing, empty, different or repeated key header is refused', async () => {
    const body = { destination: 'warehouse', idempotency_key: newKey(), request: {} };
    const { details } = assertError(await outbox.place(body, {}), 400, 'SYS_OUTBOX_VALIDATION_ERROR');
    assert.deepEqual(
      details.map(({ field, reason }) => [field, reason]),
      [['idempotency-key', 'required']],
    );
    for (const key of ['', 'another-key', `${body.idempotency_key}, ${body.idempotency_key}`])
      assertError(await outbox.place(body, { 'idempotency-key': key }), 400, 'SYS_OUTBOX_VALIDATION_ERROR');
    assert.equal(await countOf(body.idempotency_key), 0n);
  });

  test('without a destination, the error lists the configured ones', async () => {
    const answer = await outbox.place({ idempotency_key: newKey(), request: {} });
    const { message, details } = assertError(answer, 400, 'SYS_OUTBOX_VALIDATION_ERROR');
    assert.match(message, /broker, warehouse$/);
    assert.deepEqual([details[0]?.field, details[0]?.reason], ['destination', 'required']);
  });

  test('an unknown or internal destination is refused', async () => {
    for (const destination of ['nowhere', '_saga_events', 'Broker', '__proto__', 'constructor', ' ']) {
      const answer = await outbox.place({ destination, idempotency_key: newKey(), request: {} });
      const { details } = assertError(answer, 400, 'SYS_OUTBOX_VALIDATION_ERROR');
      assert.deepEqual([details[0]?.field, details[0]?.reason], ['destination', 'unknown'], destination);
    }
  });

  test('a request that violates the schema is 422 with the fields, and nothing is stored', async () => {
    const body = {
      destination: 'broker',
      idempotency_key: newKey(),
      request: { ...anOrder, qty: 0, colour: 1 },
    };
    const { details } = assertError(await outbox.place(body), 422, 'SYS_OUTBOX_SCHEMA_VIOLATION');
    assert.deepEqual(details.map(({ field }) => field).sort(), ['request.colour', 'request.qty']);
    assert.equal(await countOf(body.idempotency_key), 0n);
  });
});

test('the destination may be omitted if only one is configured', async () => {
  const key = newKey();
  const only = await startOutboxApi({
    destinations: new Map([
      ['only', { ...anyDestination, name: 'only' }],
      ['_internal', { ...anyDestination, name: '_internal', isInternal: true }],
    ]),
  });
  try {
    const { body } = await only.place({ idempotency_key: key, request: {} });
    assert.equal((body as unknown as { destination: string }).destination, 'only');
    const named = await only.place({ destination: 'only', idempotency_key: key, request: {} });
    assert.equal(named.status, 200);
  } finally {
    await only.drop();
  }
});

test('an accepted order gets the first answer even after its destination became stricter or was removed', async () => {
  const destinations = new Map([
    ['strict', { ...anyDestination, name: 'strict' }],
    ['other', { ...anyDestination, name: 'other' }],
  ]);
  const changing = await startOutboxApi({ destinations });
  try {
    const body = { destination: 'strict', idempotency_key: newKey(), request: { a: 1 } };
    const first = await changing.place(body);
    const flaw = { field: 'request.a', reason: 'type', message: 'must be string' };
    destinations.set('strict', { ...anyDestination, name: 'strict', flawsOf: () => [flaw] });
    const again = await changing.place(body);
    assert.deepEqual([again.status, again.text], [200, first.text]);
    assertError(await changing.place({ ...body, request: { a: 2 } }), 422, 'SYS_OUTBOX_SCHEMA_VIOLATION');
    assertError(
      await changing.place({ ...body, idempotency_key: newKey() }),
      422,
      'SYS_OUTBOX_SCHEMA_VIOLATION',
    );
    destinations.delete('strict');
    assert.equal((await changing.place(body)).text, first.text);
    assertError(await changing.place({ ...body, idempotency_key: newKey() }), 400);
  } finally {
    await changing.drop();
  }
});

const anyDestination = {
  type: 'http',
  isInternal: false,
  policy: {
    idempotency: 'none',
    dedupWindowMs: 0,
    retryMax: 8,
    backoff: { initialMs: 1, maxMs: 1, jitter: 0 },
    maxAgeMs: 1,
  },
  maxInFlight: 1,
  hasStatusUrl: false,
  flawsOf: (): readonly { field: string; reason: string; message: string }[] => [],
} as const;
