import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertError } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import {
  startOutboxSystem,
  storedOrder,
  type OrderOptions,
  type OutboxSystem,
} from '../support/outbox-system.ts';
import type { PartnerAct } from '../support/partner.ts';

/** Orders of one ordering key are sent one after another, and a dead one blocks the rest. */

const ok: PartnerAct = { act: 'ok' };
const refusal: PartnerAct = { act: 'status', status: 400, effect: false };
const unavailable: PartnerAct = { act: 'status', status: 503, effect: false };
const lost: PartnerAct = { act: 'reset', when: 'before_answer' };

describe('Orders of one ordering key', () => {
  let outbox: OutboxSystem;
  before(async () => {
    outbox = await startOutboxSystem({
      destinations: () => ({ chain: {}, other: {} }),
      // A due order must not wait for the next poll.
      env: { OUTBOX_IDLE_SLEEP_MS: '200', OUTBOX_PROBE_INITIAL_MS: '50', OUTBOX_PROBE_MAX_MS: '50' },
    });
  });
  after(() => outbox.conclude());

  const place = (orderingKey: string, options: OrderOptions = {}): Promise<bigint> =>
    outbox.order({ ordering_key: orderingKey, ...options });
  const keyOf = async (id: bigint): Promise<string> =>
    (await storedOrder(outbox.system.db, id)).idempotency_key;
  const decide = (id: bigint, what: string, body: object = {}, key?: string) =>
    outbox.system.api.post<{ id: number; status: string; resolution: string | null }>(
      `/api/v1/outbox/orders/${id}/${what}`,
      body,
      { 'x-actor': 'hanako', ...(key === undefined ? {} : { 'idempotency-key': key }) },
    );
  /** In the order in which the partner did them. */
  const effects = (): readonly string[] => outbox.partner.ledger.entries().map(({ key }) => key);

  test('have their effects in order of commit, whatever fails', async () => {
    const plans = [[ok], [unavailable, ok], [lost, ok], [unavailable, lost, ok]];
    const lanes = ['alpha', 'beta', 'gamma'];
    const ids = new Map(lanes.map((lane) => [lane, [] as bigint[]]));
    for (let i = 0; i < 8; i++)
      for (const [n, lane] of lanes.entries())
        ids.get(lane)?.push(await place(lane, { does: plans[(i + n) % plans.length] ?? [ok] }));
    for (const [lane, placed] of ids) {
      await outbox.become(placed, 'sent');
      const keys = await Promise.all(placed.map(keyOf));
      assert.deepEqual(
        effects().filter((key) => keys.includes(key)),
        keys,
        lane,
      );
      // No order was started before the previous one had ended.
      const begun = outbox.partner.requests.filter(({ key }) => keys.includes(key)).map(({ key }) => key);
      assert.deepEqual(
        begun,
        begun.toSorted((a, b) => keys.indexOf(a) - keys.indexOf(b)),
        lane,
      );
    }
  });

  test('follow each other without a pause', async () => {
    const ids: bigint[] = [];
    for (let i = 0; i < 30; i++) ids.push(await place('hurry', { destination: 'chain' }));
    const last = ids.at(-1) ?? 0n;
    const row = await outbox.becomes(last, 'sent', 30_000);
    const [request] = outbox.requestsOf(row);
    const [first] = outbox.requestsOf({ idempotency_key: await keyOf(ids[0] ?? 0n) });
    const tookMs = (request?.atMs ?? 0) - (first?.atMs ?? 0);
    assert.ok(
      tookMs < 29 * 100,
      `29 more took ${Math.round(tookMs)} ms, as if each waited for the next look`,
    );
  });

  test('wait behind a failing one, and block no other key', async () => {
    const hang: PartnerAct = { act: 'hold' };
    const first = await place('slow', { does: [hang] });
    const second = await place('slow');
    const others = [
      await place('quick'),
      await place('slow', { destination: 'other' }),
      await outbox.order(),
    ];
    await outbox.become(others, 'sent');
    assert.equal((await storedOrder(outbox.system.db, first)).status, 'sending');
    assert.equal((await storedOrder(outbox.system.db, second)).status, 'queued');
    outbox.partner.release();
    await outbox.becomes(first, 'sent');
    await outbox.becomes(second, 'sent');
  });

  test('wait behind a dead one until it is skipped', async () => {
    const head = await outbox.becomes(await place('skipped', { does: [refusal] }), 'dead');
    const next = [await place('skipped'), await place('skipped')];
    const other = await place('unconcerned');
    await outbox.becomes(other, 'sent');
    for (const id of next) assert.equal((await storedOrder(outbox.system.db, id)).first_sent_at, null);
    const { status, body } = await decide(head.id, 'skip', { reason: 'the desk has called it off' });
    assert.deepEqual([status, body.status, body.resolution], [200, 'dead', 'skipped']);
    await outbox.become(next, 'sent', 5000);
    assertError(await decide(head.id, 'skip'), 409);
    assert.equal(outbox.requestsOf(head).length, 1);
  });

  test('wait behind a dead one until it is superseded', async () => {
    const head = await outbox.becomes(await place('corrected', { does: [refusal] }), 'dead');
    const next = [await place('corrected'), await place('corrected')];
    const key = 'corrected-order';
    const answer = await decide(
      head.id,
      'supersede',
      { idempotency_key: key, request: { n: 'better' } },
      key,
    );
    assert.equal(answer.status, 201, answer.text);
    const corrected = BigInt(answer.body.id);
    await outbox.become([corrected, ...next], 'sent', 5000);
    const keys = [key, ...(await Promise.all(next.map(keyOf)))];
    assert.deepEqual(
      effects().filter((each) => keys.includes(each)),
      keys,
    );
    assert.deepEqual((await storedOrder(outbox.system.db, head.id)).resolution, 'superseded');
    assert.equal(outbox.requestsOf(head).length, 1);
  });

  test('continue when the failing one is cancelled', async () => {
    const head = await place('cancelled', { does: [{ act: 'later', status: 503, afterS: 60 }] });
    await outbox.becomes(head, 'failed');
    const next = await place('cancelled');
    const { status, body } = await decide(head, 'cancel', { reason: 'too late' });
    assert.deepEqual([status, body.status, body.resolution], [200, 'dead', 'cancelled']);
    await outbox.becomes(next, 'sent', 5000);
    const row = await storedOrder(outbox.system.db, head);
    assert.equal(row.last_error, 'CANCELLED: too late');
    assert.equal(outbox.requestsOf(row).length, 1);
  });

  test('in doubt can be skipped only with effect_checked', async () => {
    const head = await outbox.becomes(
      await place('doubtful', { does: [{ act: 'status', status: 500, effect: true }, refusal] }),
      'dead',
    );
    assert.match(head.last_error ?? '', /^UNKNOWN: /);
    const next = await place('doubtful');
    assertError(await decide(head.id, 'skip'), 409, 'SYS_OUTBOX_EFFECT_UNCHECKED');
    assert.equal((await decide(head.id, 'skip', { effect_checked: true })).status, 200);
    await outbox.becomes(next, 'sent', 5000);
  });

  test('can be cancelled one by one while they wait, and the others keep their order', async () => {
    const head = await place('thinned', { does: [{ act: 'hold' }] });
    await outbox.becomes(head, 'sending');
    const waiting = [await place('thinned'), await place('thinned'), await place('thinned')];
    const middle = waiting[1] ?? 0n;
    assert.equal((await decide(middle, 'cancel')).status, 200);
    assertError(await decide(head, 'cancel'), 409);
    await eventually(() => outbox.partner.release());
    await outbox.becomes(waiting[2] ?? 0n, 'sent');
    const row = await storedOrder(outbox.system.db, middle);
    assert.deepEqual([row.status, row.first_sent_at, outbox.requestsOf(row).length], ['dead', null, 0]);
  });
});
