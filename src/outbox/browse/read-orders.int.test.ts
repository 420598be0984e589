import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertError } from '../../../tests/support/api-client.ts';
import { dead, failed, sent } from '../../../tests/support/outbox-orders.ts';
import { newKey, root, startOutboxApi, type OutboxApi } from '../../../tests/support/outbox-api.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { DestinationStatus } from '../destinations.ts';

const gates = new Map<string, DestinationStatus>();
let outbox: OutboxApi;
before(async () => void (outbox = await startOutboxApi({ statusOf: (name) => gates.get(name) ?? null })));
after(() => outbox.drop());

type Listed = Readonly<{
  orders: readonly Readonly<{
    id: number;
    idempotency_key: string;
    request: unknown;
    request_omitted?: true;
    fingerprint?: string | null;
  }>[];
  pagination: Readonly<{
    total_count: number;
    has_next: boolean;
    next_cursor?: string | null;
    total_is_estimate?: true;
  }>;
}>;
const list = async (query: string): Promise<Listed> => {
  const answer = await outbox.api.get<Listed>(`${root}/orders?${query}`);
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
};
const idsOf = ({ orders }: Listed): readonly number[] => orders.map(({ id }) => id);

describe('one order', () => {
  test('it shows the request as stored, its attempts and its audit log', async () => {
    const key = newKey();
    const id = await outbox.placed({
      idempotency_key: key,
      ordering_key: 'acct',
      request: { n: 12.5, big: 1e21 },
    });
    await outbox.attempt(id, failed);
    await outbox.attempt(id, sent);
    const answer = await outbox.api.get<Readonly<Record<string, unknown>>>(`${root}/orders/${id}`);
    assert.match(answer.text, /"request":\{"n": 12\.5, "big": 1000000000000000000000\}/);
    const { attempts, audit, request, created_at, updated_at, first_sent_at, ordering_seq, ...order } =
      answer.body;
    assert.deepEqual(order, {
      id: Number(id),
      idempotency_key: key,
      request_digest: order['request_digest'],
      status: 'sent',
      retry_count: 1,
      next_attempt_at: null,
      last_error: null,
      destination: 'warehouse',
      ordering_key: 'acct',
      held: false,
      trace_id: null,
      traceparent: null,
      in_doubt: false,
      response: { status: 200, digest: 'sha256:answer', broker_order_id: 'brk-1' },
      resolution: null,
      needs_attention: false,
      supersedes_id: null,
      superseded_by_id: null,
      created_by: null,
      fingerprint: null,
      archived: false,
      lane: null,
    });
    assert.match(String(order['request_digest']), /^sha256:[0-9a-f]{64}$/);
    assert.ok(request !== null && typeof ordering_seq === 'number');
    for (const instant of [created_at, updated_at, first_sent_at])
      assert.match(String(instant), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/);
    assert.equal((attempts as unknown[]).length, 2);
    assert.deepEqual(
      (audit as { status_to: string }[]).map(({ status_to }) => status_to),
      ['queued', 'sending', 'failed', 'queued', 'sending', 'sent'],
    );
  });

  test('an archived one is shown too, and an unknown one is not found', async () => {
    const id = await outbox.placed();
    await outbox.attempt(id, sent);
    const before = await outbox.api.get<Readonly<Record<string, unknown>>>(`${root}/orders/${id}`);
    await outbox.archive(id);
    const archived = await outbox.api.get<Readonly<Record<string, unknown>>>(`${root}/orders/${id}`);
    assert.deepEqual(archived.body, { ...before.body, archived: true });
    assertError(await outbox.api.get(`${root}/orders/9223372036854775807`), 404, 'SYS_OUTBOX_NOT_FOUND');
  });
});

describe('lists', () => {
  test('filters by status, destination, key and needs_attention, newest first', async () => {
    const destination = 'broker';
    const request = { symbol: 'X', intent: 'SELL', qty: 1 };
    const ids: number[] = [];
    for (let i = 0; i < 6; i += 1) ids.push(Number(await outbox.placed({ destination, request })));
    const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = ids;
    await outbox.attempt(BigInt(a), dead);
    await outbox.attempt(BigInt(b), dead);
    await outbox.api.post(`${root}/orders/${b}/skip`);
    await outbox.attempt(BigInt(c), sent);
    await outbox.attempt(BigInt(d), failed);
    assert.deepEqual(idsOf(await list(`destination=${destination}`)), [f, e, d, c, b, a]);
    assert.deepEqual(idsOf(await list(`destination=${destination}&status=queued`)), [f, e]);
    assert.deepEqual(idsOf(await list(`destination=${destination}&status=dead`)), [b, a]);
    assert.deepEqual(idsOf(await list(`destination=${destination}&status=dead&status=sent`)), [c, b, a]);
    assert.deepEqual(idsOf(await list(`destination=${destination}&error_code=BAD_REQUEST`)), [b, a]);
    assert.deepEqual(idsOf(await list(`destination=${destination}&error_code=UNKNOWN`)), []);
    const counted = await outbox.api.get<{ facets: Readonly<Record<string, unknown>> }>(
      `${root}/orders/facets?destination=${destination}&status=dead`,
    );
    assert.deepEqual(counted.body.facets['status'], [{ value: 'dead', count: 2 }]);
    assert.deepEqual(counted.body.facets['error_code'], [{ value: 'BAD_REQUEST', count: 2 }]);
    assert.equal((await outbox.api.get(`${root}/orders/facets?page=1`)).status, 400);
    assert.deepEqual(idsOf(await list(`destination=${destination}&needs_attention=true`)), [a]);
    assert.deepEqual(idsOf(await list(`needs_attention=true&status=sent`)), []);
    const cause = (await list(`destination=${destination}&needs_attention=true`)).orders[0]?.fingerprint;
    assert.match(cause ?? '', /^v2:[0-9a-f]{32}$/);
    assert.deepEqual(idsOf(await list(`destination=${destination}&fingerprint=${cause}`)), [b, a]);
    assert.deepEqual(idsOf(await list('fingerprint=v2:nobody')), []);
    const { orders } = await list(`destination=${destination}&status=sent`);
    assert.deepEqual(idsOf(await list(`idempotency_key=${orders[0]?.idempotency_key}`)), [c]);
    assert.deepEqual(idsOf(await list('idempotency_key=nobody-has-it')), []);
  });

  test('of an ordering key, each says which one it waits for and how many wait behind it', async () => {
    const lane = { destination: 'warehouse', ordering_key: 'acct-lane' };
    const ids: bigint[] = [];
    for (let i = 0; i < 3; i += 1) ids.push(await outbox.placed(lane));
    const [head = 0n, second = 0n, last = 0n] = ids;
    await outbox.attempt(head, dead);
    const laneOf = async (id: bigint) =>
      (await outbox.api.get<Readonly<{ lane: unknown }>>(`${root}/orders/${id}`)).body.lane;
    assert.deepEqual(await laneOf(head), { blocked_by_id: null, behind: 2 });
    assert.deepEqual(await laneOf(second), { blocked_by_id: Number(head), behind: 1 });
    assert.deepEqual(await laneOf(last), { blocked_by_id: Number(head), behind: 0 });
    // As the dispatcher does when it comes to them.
    await outbox.db.query(
      sql`UPDATE outbox.outbox_orders SET held = true WHERE ordering_key = 'acct-lane' AND status = 'queued'`,
    );
    assert.deepEqual(idsOf(await list('ordering_key=acct-lane&held=true')), [Number(last), Number(second)]);
    await outbox.api.post(`${root}/orders/${head}/skip`);
    assert.deepEqual([await laneOf(head), await laneOf(second)], [null, { blocked_by_id: null, behind: 1 }]);
    await outbox.db.query(sql`UPDATE outbox.outbox_orders SET in_doubt = true WHERE id = ${last}`);
    assert.deepEqual(idsOf(await list('ordering_key=acct-lane&in_doubt=true')), [Number(last)]);
  });

  test('created_from is inclusive, created_to is exclusive', async () => {
    const ids: number[] = [];
    for (const second of [10, 20, 30]) {
      const id = await outbox.placed();
      await outbox.db.query(sql`
        UPDATE outbox.outbox_orders SET created_at = ${`2001-02-03T04:05:${second}Z`}::timestamptz
        WHERE id = ${id}`);
      ids.unshift(Number(id));
    }
    const [third, second, first] = ids;
    const day = '2001-02-03T04:05';
    const range = (from: string, to: string) => list(`created_from=${day}:${from}&created_to=${day}:${to}`);
    assert.deepEqual(idsOf(await range('10Z', '31Z')), [third, second, first]);
    assert.deepEqual(idsOf(await range('20Z', '30Z')), [second]);
    assert.deepEqual(idsOf(await range('20.000Z', '30.001Z')), [third, second]);
    assert.deepEqual(idsOf(await range('31Z', '10Z')), []);
    assert.deepEqual(idsOf(await list(`created_to=2001-02-03T06:05:20%2B02:00`)), [first]);
    // An unencoded plus sign arrives as a space.
    assert.deepEqual(idsOf(await list(`created_to=2001-02-03T06:05:20+02:00`)), [first]);
  });

  test('a cursor walks through a list page by page, by id and by time', async () => {
    const destination = 'warehouse';
    const all = idsOf(await list(`destination=${destination}&page_size=100`));
    for (const filter of [
      `destination=${destination}`,
      `destination=${destination}&created_to=9999-12-31T23:59:59Z`,
    ]) {
      const walked: number[] = [];
      let cursor: string | null = '';
      while (cursor !== null) {
        const page: Listed = await list(`${filter}&page_size=2&cursor=${cursor}`);
        walked.push(...idsOf(page));
        cursor = page.pagination.next_cursor ?? null;
        assert.equal(page.pagination.has_next, cursor !== null);
      }
      assert.deepEqual(new Set(walked), new Set(all));
      assert.equal(new Set(walked).size, walked.length);
    }
  });

  test('a cursor of another list is refused', async () => {
    const { pagination } = await list('page_size=1&cursor=');
    const path = `${root}/orders?created_to=2030-01-01T00:00:00Z&cursor=${pagination.next_cursor}`;
    const { details } = assertError(await outbox.api.get(path), 400, 'SYS_OUTBOX_VALIDATION_ERROR');
    assert.equal(details[0]?.field, 'cursor');
  });

  test('pages by number have a total, and pages past the end are empty', async () => {
    const { pagination, orders } = await list('page=1&page_size=3');
    assert.equal(orders.length, 3);
    assert.ok(pagination.total_count > 3 && pagination.has_next);
    assert.equal(pagination.total_is_estimate, undefined);
    assert.equal(pagination.next_cursor, undefined);
    assert.deepEqual(idsOf(await list('page=1000000&page_size=100')), []);
  });

  test('a request that is too large for a list is shown with the single order', async () => {
    const id = await outbox.placed({ request: { text: 'x'.repeat(70_000) } });
    const [listed] = (await list('page_size=1')).orders;
    assert.deepEqual([listed?.id, listed?.request, listed?.request_omitted], [Number(id), null, true]);
    const whole = await outbox.api.get<{ request: { text: string } }>(`${root}/orders/${id}`);
    assert.equal(whole.body.request.text.length, 70_000);
  });
});

describe('the ledger', () => {
  type Proof = Readonly<Record<string, unknown>> &
    Readonly<{
      order: Readonly<Record<string, unknown>>;
      attempts: readonly unknown[];
      earlier_uses: readonly Proof[];
    }>;
  const proofOf = async (key: string) =>
    (await outbox.api.get<Proof>(`${root}/ledger/${encodeURIComponent(key)}`)).body;

  test('a key proves its effect: digests, outside id, order and attempts', async () => {
    const key = `${newKey()}/?%#é`.replace('é', '~');
    const id = await outbox.placed({ idempotency_key: key });
    const accepted = await proofOf(key);
    assert.deepEqual(
      [accepted['status'], accepted['expires_at'], accepted['result_digest'], accepted.attempts.length],
      ['accepted', null, null, 0],
    );
    await outbox.attempt(id, failed);
    await outbox.attempt(id, sent);
    const { order, attempts, created_at, updated_at, expires_at, ...proof } = await proofOf(key);
    assert.deepEqual(proof, {
      idempotency_key: key,
      request_digest: order['request_digest'],
      status: 'succeeded',
      result_digest: 'sha256:answer',
      outside_id: 'brk-1',
      archived: false,
      archived_at: null,
      order_id: Number(id),
      supersedes_id: null,
      superseded_by_id: null,
      earlier_uses: [],
    });
    assert.equal(attempts.length, 2);
    assert.equal(order['status'], 'sent');
    for (const instant of [created_at, updated_at, expires_at]) assert.equal(typeof instant, 'string');
  });

  test('a key that was used again shows every use, newest first', async () => {
    const key = newKey();
    const first = await outbox.placed({ idempotency_key: key });
    await outbox.attempt(first, sent);
    await outbox.archive(first);
    const archived = await proofOf(key);
    assert.deepEqual([archived['archived'], archived['status']], [true, 'succeeded']);
    assert.equal(archived.order['id'], Number(first));
    const second = await outbox.placed({ idempotency_key: key, request: { sku: 'other' } });
    const both = await proofOf(key);
    assert.deepEqual([both['order_id'], both['archived']], [Number(second), false]);
    assert.deepEqual(
      both.earlier_uses.map((use) => [use['order_id'], use['archived'], use['outside_id']]),
      [[Number(first), true, 'brk-1']],
    );
  });

  test('an order and its correction link to each other', async () => {
    const key = newKey();
    const id = await outbox.placed({ idempotency_key: key });
    await outbox.attempt(id, dead);
    const newer = newKey();
    const { body } = await outbox.api.post<{ id: number }>(
      `${root}/orders/${id}/supersede`,
      { idempotency_key: newer, request: {} },
      { 'idempotency-key': newer },
    );
    assert.equal((await proofOf(key))['superseded_by_id'], body.id);
    assert.equal((await proofOf(newer))['supersedes_id'], Number(id));
    await outbox.archive(BigInt(body.id));
    assert.equal((await proofOf(key))['superseded_by_id'], body.id);
  });

  test('an unused key is not found, and an invalid key is refused', async () => {
    assertError(await outbox.api.get(`${root}/ledger/nobody-used-it`), 404, 'SYS_OUTBOX_NOT_FOUND');
    for (const key of [
      'short',
      'x'.repeat(65),
      'with%20blank',
      '%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9',
    ])
      assertError(await outbox.api.get(`${root}/ledger/${key}`), 400, 'SYS_OUTBOX_VALIDATION_ERROR');
  });
});

describe('the destinations', () => {
  type Destination = Readonly<Record<string, unknown>> & Readonly<{ name: string }>;

  test('each shows its backlog, including destinations that are not configured', async () => {
    const fresh = await startOutboxApi({ statusOf: (name) => gates.get(name) ?? null });
    try {
      const at = new Date('2026-02-20T10:30:00Z');
      gates.set('broker', {
        inFlight: 3,
        snapshot: {
          rate: 12.5,
          peak: 100,
          holdUntil: at,
          circuit: { state: 'open', openedAt: at, reason: 'BROKER_5XX: HTTP 503', nextProbeAt: at },
        },
      });
      gates.set('warehouse', {
        inFlight: 0,
        snapshot: {
          rate: null,
          peak: null,
          holdUntil: null,
          circuit: { state: 'closed', openedAt: null, reason: null, nextProbeAt: null },
        },
      });
      const old = await fresh.placed();
      await fresh.placed({ ordering_key: 'k' });
      await fresh.attempt(await fresh.placed(), sent);
      await fresh.db.query(sql`
        UPDATE outbox.outbox_orders SET created_at = now() - interval '100 seconds' WHERE id = ${old}`);
      const strange = await fresh.placed();
      await fresh.db.query(
        sql`UPDATE outbox.outbox_orders SET destination = 'strange' WHERE id = ${strange}`,
      );
      const done = await fresh.placed();
      await fresh.attempt(done, sent);
      await fresh.db.query(sql`UPDATE outbox.outbox_orders SET destination = 'forgotten' WHERE id = ${done}`);
      const under = await fresh.placed();
      await fresh.db.query(sql`
        UPDATE outbox.outbox_orders SET destination = 'under-way', status = 'sending' WHERE id = ${under}`);

      const { body } = await fresh.api.get<{ destinations: readonly Destination[] }>(`${root}/destinations`);
      assert.deepEqual(
        body.destinations.map(({ name, configured }) => [name, configured]),
        [
          ['_saga_events', true],
          ['broker', true],
          ['strange', false],
          ['under-way', false],
          ['warehouse', true],
        ],
      );
      const [internal, broker, unknown, underWay, warehouse] = body.destinations;
      assert.deepEqual(
        [internal?.['internal'], internal?.['throttle'], internal?.['circuit']],
        [true, null, null],
      );
      assert.deepEqual(broker, {
        name: 'broker',
        configured: true,
        internal: false,
        type: 'http',
        idempotency: 'enforced',
        throttle: {
          rate_per_second: 12.5,
          peak_per_second: 100,
          held_until: '2026-02-20T10:30:00.000+00:00',
        },
        circuit: {
          state: 'open',
          opened_at: '2026-02-20T10:30:00.000+00:00',
          reason: 'BROKER_5XX: HTTP 503',
          next_probe_at: '2026-02-20T10:30:00.000+00:00',
        },
        asks_status: false,
        retry_max: 8,
        lag_seconds: null,
        lag_p99_seconds: null,
        waiting: 0,
        needs_attention: 0,
        in_flight: { here: 3, all: 0, limit_here: 16 },
      });
      assert.deepEqual([unknown?.['type'], unknown?.['waiting'], unknown?.['idempotency']], [null, 1, null]);
      assert.deepEqual(
        [underWay?.['waiting'], underWay?.['in_flight']],
        [0, { here: 0, all: 1, limit_here: null }],
      );
      assert.deepEqual([warehouse?.['waiting'], warehouse?.['throttle']], [2, null]);
      const lag = Number(warehouse?.['lag_seconds']);
      assert.ok(lag >= 100 && lag < 200, String(lag));
    } finally {
      await fresh.drop();
    }
  });
});
