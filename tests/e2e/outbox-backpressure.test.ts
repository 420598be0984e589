import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { storyOf } from '../support/outbox-orders.ts';
import { startOutboxSystem, storedOrders, type OutboxSystem } from '../support/outbox-system.ts';
import { startPartner, type PartnerAct } from '../support/partner.ts';
import { unusedPort } from '../support/raw-server.ts';

/** Throttling and circuits: a destination that is limited or unavailable gets fewer requests, and no other one is affected. */

const ok: PartnerAct = { act: 'ok' };
const limited: PartnerAct = { act: 'later', status: 429 };
const unauthorized: PartnerAct = { act: 'status', status: 401, effect: false };

type DestinationView = Readonly<{
  name: string;
  throttle: Readonly<{ rate_per_second: number | null; held_until: string | null }> | null;
  circuit: Readonly<{ state: string; reason?: string }>;
}>;

describe('A destination', { concurrency: true }, () => {
  let outbox: OutboxSystem;
  let closedPort: number;
  /** Orders whose keys begin so are turned away. */
  const locked = new Set<string>();
  const taken: number[] = [];
  /** Takes ten a second, and answers 429 to the others. */
  const meter = (): PartnerAct => {
    const nowMs = performance.now();
    if (taken.filter((atMs) => atMs > nowMs - 1000).length >= 10) return limited;
    taken.push(nowMs);
    return ok;
  };
  before(async () => {
    closedPort = await unusedPort();
    outbox = await startOutboxSystem({
      destinations: () => ({
        seconds: {},
        date: {},
        unavailable: {},
        held: {},
        aged: { max_age: '2s' },
        metered: {},
        slow: { max_in_flight: 4 },
        locked: { max_in_flight: 1 },
        locked_at_once: {},
        closed: { url: `http://127.0.0.1:${closedPort}/orders`, idempotency: 'none' },
      }),
      env: { OUTBOX_PROBE_INITIAL_MS: '150', OUTBOX_PROBE_MAX_MS: '300' },
    });
    outbox.otherwise((key) => {
      if (key.startsWith('metered-')) return meter();
      return locked.has(key.slice(0, 9)) ? unauthorized : ok;
    });
  });
  after(() => outbox.conclude());

  const rowsOf = (ids: readonly bigint[]) => storedOrders(outbox.system.db, ids);
  const orders = async (count: number, destination: string, does?: readonly PartnerAct[]) => {
    const ids: bigint[] = [];
    for (let i = 0; i < count; i++)
      ids.push(await outbox.order({ destination, ...(does === undefined ? {} : { does }) }));
    return ids;
  };
  /** All of them in one moment, with keys that begin so. */
  const ordersAtOnce = async (count: number, destination: string, prefix: string) => {
    const added = await outbox.system.db.query<{ id: bigint }>(sql`
      SELECT a.id
      FROM generate_series(1, ${count}::int) AS n, outbox.add_order('{}', ${prefix} || n, ${destination}) AS a`);
    return added.map(({ id }) => id);
  };
  const allSent = (ids: readonly bigint[]) => outbox.become(ids, 'sent');
  const view = async (name: string): Promise<DestinationView> => {
    const { body } = await outbox.system.api.get<{ destinations: readonly DestinationView[] }>(
      '/api/v1/outbox/destinations',
    );
    const found = body.destinations.find((each) => each.name === name);
    assert.ok(found);
    return found;
  };
  const circuitIs = (name: string, state: string) =>
    eventually(async () => {
      const { circuit } = await view(name);
      assert.equal(circuit.state, state);
      return circuit;
    });

  for (const [destination, form] of [
    ['seconds', 'seconds'],
    ['date', 'date'],
  ] as const)
    test(`that sends Retry-After in ${form} gets no request before it, and no retry is spent`, async () => {
      const id = await outbox.order({
        destination,
        does: [{ act: 'later', status: 429, afterS: 2, form }, ok],
      });
      const row = await outbox.becomes(id, 'sent');
      const [first, second] = outbox.requestsOf(row).map(({ atMs }) => performance.timeOrigin + atMs);
      assert.ok(first !== undefined && second !== undefined);
      // A date has whole seconds, and both clocks are rounded.
      const asked = form === 'seconds' ? first + 2000 : Math.floor((first + 2000) / 1000) * 1000;
      assert.ok(second >= asked - 5, `${asked - second} ms too early`);
      assert.deepEqual([row.retry_count, row.in_doubt], [0, false]);
      assert.equal(
        await storyOf(outbox.system.db, id),
        'queued > sending > failed > queued > sending > sent',
      );
    });

  test('that answers 503 with Retry-After gets that order no earlier', async () => {
    const destination = 'unavailable';
    const id = await outbox.order({ destination, does: [{ act: 'later', status: 503, afterS: 1 }, ok] });
    await outbox.becomes(id, 'failed');
    await allSent(await orders(2, destination));
    const row = await outbox.becomes(id, 'sent');
    const [first, second] = outbox.requestsOf(row);
    assert.ok((second?.atMs ?? 0) - (first?.atMs ?? 0) >= 1000 - 5);
    assert.equal(row.retry_count, 1);
  });

  test('that answers 429 is throttled as a whole, and another one is not', async () => {
    const first = await outbox.order({
      destination: 'held',
      does: [{ act: 'later', status: 429, afterS: 4 }, ok],
    });
    await outbox.becomes(first, 'failed');
    await eventually(async () => assert.ok((await view('held')).throttle?.held_until));
    const held = await orders(3, 'held');
    await allSent(await ordersAtOnce(20, 'broker', 'beside-held-'));
    const waiting = await rowsOf([first, ...held]);
    assert.deepEqual(
      waiting.map(({ status }) => status),
      ['failed', 'queued', 'queued', 'queued'],
    );
    const sent = await allSent([first, ...held]);
    const [refused] = outbox.requestsOf(sent[0] ?? assert.fail());
    for (const row of sent) {
      assert.equal(row.retry_count, 0);
      assert.ok((outbox.requestsOf(row).at(-1)?.atMs ?? 0) - (refused?.atMs ?? 0) >= 4000 - 5);
    }
  });

  test('with a rate limit is sent to more slowly, and gets all orders', async () => {
    const sent = await allSent(await ordersAtOnce(40, 'metered', 'metered-'));
    assert.ok(sent.every((row) => row.retry_count === 0));
    // Without a throttle, the thirty orders over the limit would be repeated all the time.
    const requests = outbox.partner.requests.filter(({ key }) => key.startsWith('metered-'));
    assert.ok(requests.length < 200, `${requests.length} requests`);
  });

  test('that always answers 429 gets no order that is older than max_age', async () => {
    const id = await outbox.order({ destination: 'aged', does: [limited] });
    const row = await outbox.becomes(id, 'dead');
    assert.match(row.last_error ?? '', /^RATE_LIMITED: HTTP 429/);
    assert.deepEqual([row.retry_count, row.in_doubt], [0, false]);
    const [age] = await outbox.system.db.query<{ seconds: number }>(sql`
      SELECT date_part('epoch', max(at) - min(at))::float8 AS seconds
      FROM outbox.outbox_audit WHERE outbox_id = ${id} AND status_from IS NOT NULL`);
    assert.ok((age?.seconds ?? 0) >= 2, `it was given up after ${age?.seconds} s`);
  });

  test('that does not answer delays no other destination', async () => {
    const held = await orders(4, 'slow', [{ act: 'hold' }]);
    const behind = await orders(2, 'slow');
    await eventually(() =>
      assert.equal(outbox.partner.requests.filter(({ act }) => act === 'hold').length, 4),
    );
    await allSent(await ordersAtOnce(20, 'broker', 'beside-slow-'));
    const statuses = (await rowsOf([...held, ...behind])).map(({ status }) => status);
    assert.deepEqual(statuses, [...Array<string>(4).fill('sending'), 'queued', 'queued']);
    outbox.partner.release();
    await allSent([...held, ...behind]);
  });

  for (const [destination, prefix, under] of [
    ['locked', 'locked-a-', 'one after another'],
    ['locked_at_once', 'locked-b-', 'all at once'],
  ] as const)
    test(`that rejects the credentials costs three of many orders that are sent ${under}, and gets the rest later`, async () => {
      locked.add(prefix);
      const ids = await ordersAtOnce(20, destination, prefix);
      const { reason } = await circuitIs(destination, 'open');
      assert.match(reason ?? '', /^UNAUTHORIZED: HTTP 401/);
      const { body } = await outbox.system.api.get<{ status: string }>('/readyz');
      assert.equal(body.status, 'degraded');
      const requests = () => outbox.partner.requests.filter(({ key }) => key.startsWith(prefix));
      const begun = requests().length;
      await eventually(() => assert.ok(requests().length >= begun + 3, 'probes are sent'));
      const probes = requests()
        .slice(begun)
        .map(({ key }) => key);
      assert.ok(
        probes.every((key, i) => key !== probes[i + 1]),
        `twice in a row: ${probes.join()}`,
      );
      locked.delete(prefix);
      await circuitIs(destination, 'closed');
      await eventually(async () => {
        const statuses = (await rowsOf(ids)).map(({ status }) => status);
        assert.ok(statuses.every((status) => status === 'sent' || status === 'dead'));
      });
      const rows = await rowsOf(ids);
      const dead = rows.filter(({ status }) => status === 'dead');
      assert.equal(dead.length, 3);
      assert.ok(rows.every((row) => row.retry_count === 0));
      assert.ok(dead.every((row) => row.last_error?.startsWith('UNAUTHORIZED: ')));
    });

  test('that is unavailable is found again by probes, which cost no retry and leave no doubt', async () => {
    const destination = 'closed';
    const ids = await orders(6, destination);
    const { reason } = await circuitIs(destination, 'open');
    assert.match(reason ?? '', /^NETWORK_TIMEOUT: .*ECONNREFUSED/);
    const spent = await eventually(async () => {
      const rows = await rowsOf(ids);
      assert.ok(
        rows.every(({ status }) => status !== 'sending'),
        'what was under way has ended',
      );
      return rows.map((row) => row.retry_count);
    });
    const attempts = async (): Promise<number> => {
      const [row] = await outbox.system.db.query<{ count: number }>(sql`
        SELECT count(*)::int AS count FROM outbox.outbox_audit
        WHERE outbox_id = ANY(${ids}::bigint[]) AND status_from = 'sending'`);
      return row?.count ?? 0;
    };
    const before = await attempts();
    await eventually(async () => assert.ok((await attempts()) >= before + 3));
    assert.deepEqual(
      (await rowsOf(ids)).map((row) => row.retry_count),
      spent,
    );
    const back = await startPartner({ port: closedPort, ledger: outbox.partner.ledger });
    const sent = await allSent(ids);
    await circuitIs(destination, 'closed');
    assert.equal(back.requestCount(), 6);
    assert.ok(sent.every((row) => !row.in_doubt));
    await back.stop();
  });
});

test('An open circuit is probed in time by a system that polls once a minute', async (t) => {
  const outbox = await startOutboxSystem({
    env: { OUTBOX_IDLE_SLEEP_MS: '60000', OUTBOX_PROBE_INITIAL_MS: '150', OUTBOX_PROBE_MAX_MS: '300' },
  });
  t.after(() => outbox.conclude());
  outbox.otherwise(() => ({ act: 'status', status: 503, effect: false }));
  const ids: bigint[] = [];
  for (let i = 0; i < 6; i++) ids.push(await outbox.order());
  await eventually(() => assert.ok(outbox.partner.requestCount() >= 8, 'two probes, at least'));
  outbox.otherwise(() => ok);
  await outbox.become(ids, 'sent');
});
