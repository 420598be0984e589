import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client } from 'pg';
import { sql } from '../../src/platform/postgres/sql.ts';
import { outbox as sdk } from '../../src/sdk/index.ts';
import { sortedStatuses } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { storyOf } from '../support/outbox-orders.ts';
import { startOutboxSystem, storedOrder, type OutboxSystem } from '../support/outbox-system.ts';
import { serveRaw } from '../support/raw-server.ts';

const token = 'Bearer s3cret-of-the-broker';

describe('An order', () => {
  let outbox: OutboxSystem;
  before(async () => {
    outbox = await startOutboxSystem({
      destinations: () => ({
        flat: { body: 'order', headers: { authorization: token, 'x-desk': 'tokyo' } },
        strict: { schema: 'order' },
      }),
    });
  });
  after(() => outbox.conclude());

  const partnerSaw = (id: bigint) =>
    outbox.becomes(id, 'sent').then((row) => {
      const [request, ...others] = outbox.requestsOf(row);
      assert.ok(request);
      assert.deepEqual(others, []);
      return request;
    });
  const addBySql = async (key: string, destination: string, request: object): Promise<bigint> => {
    const [added] = await outbox.system.db.query<{ id: bigint; outcome: string }>(
      sql`SELECT id, outcome FROM outbox.add_order(${JSON.stringify(request)}::json, ${key}, ${destination})`,
    );
    assert.equal(added?.outcome, 'created');
    return added.id;
  };
  const addBySdk = async (
    key: string,
    destination: string,
    end: 'COMMIT' | 'ROLLBACK',
    request: object = { n: 0 },
  ) => {
    const client = new Client({ connectionString: outbox.system.database.url });
    await client.connect();
    try {
      await client.query('BEGIN');
      const added = await sdk.add(client, { destination, idempotencyKey: key, request });
      assert.equal(added.outcome, 'created');
      await client.query(end);
      return added.id;
    } finally {
      await client.end();
    }
  };

  test('that was accepted is sent to the partner once', async () => {
    const id = await outbox.order({ request: { symbol: 'USDJPY', limit_price: 145.001 } });
    const { body, headers } = await partnerSaw(id);
    const row = await storedOrder(outbox.system.db, id);
    const effect = outbox.partner.ledger.get(row.idempotency_key);
    assert.equal(effect?.count, 1);
    assert.deepEqual(JSON.parse(body), { symbol: 'USDJPY', limit_price: 145.001 });
    assert.equal(headers['idempotency-key'], row.idempotency_key);
    assert.equal(headers['content-type'], 'application/json');
    const { broker_order_id: outsideId } = JSON.parse(effect.answer) as { broker_order_id: string };
    assert.deepEqual([row.response?.status, row.response?.broker_order_id], [200, outsideId]);
    assert.equal(await storyOf(outbox.system.db, id), 'queued > sending > sent');
  });

  test('that is posted ten times in parallel is stored once and sent once', async () => {
    const body = { destination: 'broker', idempotency_key: 'ten-at-once', request: { qty: 10_000 } };
    const post = () =>
      outbox.system.api.post<{ id: number }>('/api/v1/outbox/orders', body, {
        'idempotency-key': 'ten-at-once',
      });
    const answers = await Promise.all(Array.from({ length: 10 }, post));
    assert.deepEqual(sortedStatuses(answers), [...Array<number>(9).fill(200), 201]);
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    const replayed = answers.filter(({ headers }) => headers.get('idempotent-replayed') === 'true');
    assert.ok(replayed.length === 9 && replayed.every(({ status }) => status === 200));
    await partnerSaw(BigInt(answers[0]?.body.id ?? 0));
    assert.equal((await post()).status, 200);
    const [rows] = await outbox.system.db.query<{ orders: number; ledger: number }>(sql`
      SELECT (SELECT count(*)::int FROM outbox.outbox_orders WHERE idempotency_key = 'ten-at-once') AS orders,
             (SELECT count(*)::int FROM outbox.idempo_ledger WHERE idempotency_key = 'ten-at-once') AS ledger`);
    assert.deepEqual(rows, { orders: 1, ledger: 1 });
    assert.equal(outbox.partner.requests.filter(({ key }) => key === 'ten-at-once').length, 1);
  });

  test('is sent flat, with key and trace id among its fields, if the destination is configured so', async () => {
    const request = { symbol: 'USDJPY', qty: 10_000, meta: { source: 'desk' } };
    const id = await outbox.order({
      destination: 'flat',
      idempotency_key: 'flat-order',
      request,
      trace_id: 'do-outbox-1',
    });
    const { body } = await partnerSaw(id);
    assert.deepEqual(JSON.parse(body), {
      ...request,
      idempotency_key: 'flat-order',
      trace_id: 'do-outbox-1',
    });
  });

  test('has the headers of its destination, whose secrets appear nowhere', async () => {
    const { headers } = await partnerSaw(await outbox.order({ destination: 'flat' }));
    assert.deepEqual([headers['authorization'], headers['x-desk']], [token, 'tokyo']);
    const echo = {
      act: 'status',
      status: 400,
      effect: false,
      body: `{"error":"bad credentials ${token}"}`,
    } as const;
    const row = await outbox.becomes(await outbox.order({ destination: 'flat', does: [echo] }), 'dead');
    assert.match(row.last_error ?? '', /^BAD_REQUEST: HTTP 400: .*bad credentials/);
    const shown = await outbox.system.api.get(`/api/v1/outbox/orders/${row.id}`);
    assert.ok(!shown.text.includes('s3cret'), shown.text);
  });

  test('passes the trace of its request on to the partner', async () => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    const body = { destination: 'broker', idempotency_key: 'traced-order', request: {} };
    const answer = await outbox.system.api.post<{ id: number }>('/api/v1/outbox/orders', body, {
      'idempotency-key': 'traced-order',
      traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
    });
    const { headers } = await partnerSaw(BigInt(answer.body.id));
    assert.match(String(headers['traceparent']), new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`));
  });

  test('of a transaction is sent after its commit, and not after a rollback', async () => {
    await addBySdk('rolled-back', 'broker', 'ROLLBACK');
    const id = await addBySdk('committed', 'broker', 'COMMIT');
    assert.ok(id !== null);
    await partnerSaw(id);
    assert.equal(outbox.partner.ledger.get('rolled-back'), undefined);
  });

  test('that was added in SQL is validated before it is sent, and dies unsent', async () => {
    const bySql = await addBySql('flawed-by-sql', 'strict', { symbol: 'USDJPY', intent: 'HOLD', qty: 1 });
    const bySdk = await addBySdk('flawed-by-sdk', 'strict', 'COMMIT', {
      symbol: 'USDJPY',
      intent: 'BUY',
      qty: 0,
    });
    assert.ok(bySdk !== null);
    const errors = [
      /^BAD_REQUEST: request.intent must be one of: BUY, SELL$/,
      /^BAD_REQUEST: request.qty must be > 0$/,
    ];
    for (const [i, id] of [bySql, bySdk].entries()) {
      const row = await outbox.becomes(id, 'dead');
      assert.match(row.last_error ?? '', errors[i] ?? /$^/);
      assert.deepEqual([row.first_sent_at, row.in_doubt, outbox.requestsOf(row).length], [null, false, 0]);
    }
    const fine = { symbol: 'USDJPY', intent: 'BUY', qty: 1 };
    await partnerSaw(await addBySql('fine-by-sql', 'strict', fine));
  });

  test('to an unknown destination waits, degrades readiness, and is sent once the destination is configured', async () => {
    const id = await addBySql('to-somewhere', 'somewhere', {});
    const ready = await eventually(async () => {
      const { status, body } = await outbox.system.api.get<{ status: string; checks: object }>('/readyz');
      assert.equal(body.status, 'degraded');
      return { status, text: JSON.stringify(body) };
    });
    assert.equal(ready.status, 200);
    assert.match(ready.text, /orders wait for unknown destinations: somewhere/);
    const { status, first_sent_at: sentAt } = await storedOrder(outbox.system.db, id);
    assert.deepEqual([status, sentAt], ['queued', null]);
    const { partner, system } = outbox;
    const second = await startOutboxSystem({
      partner,
      database: system.database,
      destinations: () => ({ somewhere: {} }),
    });
    try {
      await second.becomes(id, 'sent');
    } finally {
      await second.drop();
    }
    assert.equal(partner.ledger.get('to-somewhere')?.count, 1);
  });
});

describe('An order for an idle system', () => {
  const isIdle = ({ system }: OutboxSystem): Promise<void> =>
    eventually(async () => {
      const rows = await system.db.query(sql`
        SELECT 1 FROM platform.idle_workers WHERE channel = 'outbox:broker' AND idle_until > clock_timestamp()`);
      assert.ok(rows.length > 0);
    });
  const secondsToSend = async (outbox: OutboxSystem): Promise<number> => {
    const id = await outbox.order();
    await outbox.becomes(id, 'sent');
    const [row] = await outbox.system.db.query<{ seconds: number }>(sql`
      SELECT date_part('epoch', max(at) - min(at))::float8 AS seconds FROM outbox.outbox_audit WHERE outbox_id = ${id}`);
    return row?.seconds ?? Infinity;
  };

  for (const [doing, idleSleepMs] of [
    ['polls often', '200'],
    ['polls once a minute', '60000'],
  ] as const)
    test(`is sent within a second while the system ${doing}`, async (t) => {
      const outbox = await startOutboxSystem({ env: { OUTBOX_IDLE_SLEEP_MS: idleSleepMs } });
      t.after(() => outbox.conclude());
      await isIdle(outbox);
      const times: number[] = [];
      for (let i = 0; i < 5; i++) times.push(await secondsToSend(outbox));
      const [, , median = Infinity] = times.toSorted((a, b) => a - b);
      assert.ok(median < 1, `${times.join(', ')} s`);
    });
});

describe('Many orders, sent by two replicas,', () => {
  let outbox: OutboxSystem;
  let second: OutboxSystem;
  before(async () => {
    const options = {
      broker: { timeout_ms: 20_000 },
      env: { OUTBOX_PROBE_INITIAL_MS: '50', OUTBOX_PROBE_MAX_MS: '50' },
    };
    outbox = await startOutboxSystem(options);
    second = await startOutboxSystem({
      ...options,
      partner: outbox.partner,
      database: outbox.system.database,
    });
  });
  after(async () => {
    await second.drop();
    await outbox.conclude();
  });

  const addMany = async (name: string, count: number): Promise<void> => {
    await outbox.system.db.query(sql`
      SELECT outbox.add_order(
        json_build_object('n', n), ${name} || n, 'broker', CASE WHEN n % 10 = 0 THEN 'lane-' || n % 30 END)
      FROM generate_series(1, ${count}::int) AS n`);
    await eventually(async () => {
      const [row] = await outbox.system.db.query<{ count: number }>(
        sql`SELECT count(*)::int AS count FROM outbox.outbox_orders WHERE status <> 'sent'`,
      );
      assert.equal(row?.count, 0);
    });
  };

  test('reach a good partner once each', async () => {
    await addMany('good-partner-', 500);
    assert.equal(outbox.partner.requestCount(), 500);
    const [claimers] = await outbox.system.db.query<{ count: number }>(sql`
      SELECT count(DISTINCT actor)::int AS count FROM outbox.outbox_audit WHERE status_to = 'sending'`);
    assert.equal(claimers?.count, 2, 'both have sent some');
  });

  test('have one effect each at a partner that fails every fourth time', async () => {
    outbox.partner.setScript({
      rules: [
        { chance: 0.08, does: { act: 'status', status: 503, effect: false } },
        { chance: 0.08, does: { act: 'status', status: 500, effect: true } },
        { chance: 0.08, does: { act: 'reset', when: 'before_answer' } },
        { chance: 0.02, does: { act: 'garbage', effect: true } },
      ],
      repeat: 'processed',
    });
    await addMany('bad-partner-', 500);
    assert.ok(outbox.partner.requestCount() > 1050);
  });
});

describe('A system that stops', () => {
  test('lets sends finish, sends nothing twice, and leaves the rest to the next process', async (t) => {
    const outbox = await startOutboxSystem({ broker: { max_in_flight: 4, timeout_ms: 9000 } });
    t.after(() => outbox.conclude());
    const { partner, system } = outbox;
    outbox.otherwise(() => ({ act: 'hold' }));
    const ids: bigint[] = [];
    for (let i = 0; i < 12; i++) ids.push(await outbox.order());
    await eventually(() => assert.equal(partner.requests.length, 4));
    const stopped = system.stop();
    await eventually(() => assert.rejects(system.api.get('/healthz')));
    outbox.otherwise(() => ({ act: 'ok' }));
    partner.release();
    await stopped;
    const begun = new Set(partner.requests.map(({ key }) => key));
    for (const id of ids) {
      const row = await storedOrder(system.db, id);
      const isBegun = begun.has(row.idempotency_key);
      const facts = [row.status, row.retry_count, row.first_sent_at === null];
      assert.deepEqual(facts, isBegun ? ['sent', 0, false] : ['queued', 0, true]);
    }
    const second = await startOutboxSystem({ partner, database: system.database });
    try {
      await second.become(ids, 'sent');
    } finally {
      await second.drop();
    }
    assert.equal(partner.requestCount(), 12);
  });

  test('releases orders that it has claimed and not begun to send', async (t) => {
    // It accepts the connection and never answers the TLS handshake, so no request is sent.
    const mute = await serveRaw(t, () => {});
    const outbox = await startOutboxSystem({
      broker: { url: `https://127.0.0.1:${mute.port}/orders`, idempotency: 'none', timeout_ms: 4000 },
    });
    t.after(() => outbox.conclude());
    const ids = [await outbox.order(), await outbox.order()];
    await eventually(() => assert.equal(mute.connections(), 2));
    await outbox.system.stop();
    for (const id of ids) {
      const row = await storedOrder(outbox.system.db, id);
      assert.deepEqual(
        [row.status, row.retry_count, row.first_sent_at, row.in_doubt],
        ['queued', 0, null, false],
      );
      assert.equal(await storyOf(outbox.system.db, id), 'queued > sending > queued');
    }
  });
});
