import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { storyOf } from '../support/outbox-orders.ts';
import type { Partner } from '../support/partner.ts';
import type { FaultPlan } from './support/faults.ts';
import {
  honest,
  keysFrom,
  openOutboxScene,
  staleWritesOf,
  type Outside,
  type OutboxScene,
} from './support/outbox-scene.ts';
import { until } from './support/until.ts';

type Scene = OutboxScene & Readonly<{ partner: Partner }>;

async function scene(t: TestContext, options: Parameters<typeof openOutboxScene>[0] = {}): Promise<Scene> {
  const at = await openOutboxScene(options);
  t.after(() => at.close());
  return at;
}

/** A partner for whom every request is an effect, but who can be asked what has happened. */
const askable = {
  partner: { honoursKeys: false },
  broker: ({ statusUrl }: Outside) => ({ idempotency: 'none', status_url: statusUrl }),
} as const;

const killAt = (at: FaultPlan['faults'][number]['at'], nth?: number): FaultPlan => ({
  faults: [{ at, act: 'kill', ...(nth === undefined ? {} : { nth }) }],
});

/** Delivers one order in a process that dies on the way. */
async function dieDelivering(at: Scene, plan: FaultPlan): Promise<void> {
  const victim = await at.start(plan);
  await at.place(['order-of-one']);
  assert.equal(await victim.died(), 'SIGKILL');
}

const together = { concurrency: 3 } as const;

describe('A process that is killed while it delivers an order', together, () => {
  it('after the claim has sent nothing: it costs one retry, and the order is sent once', async (t) => {
    const at = await scene(t);
    await dieDelivering(at, killAt('order_claimed'));
    assert.equal((await at.row()).status, 'sending');
    assert.equal(at.partner.requestCount(), 0);
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.ok(row?.status === 'sent' && row.retryCount === 1 && row.inDoubt);
    assert.equal(at.partner.requestCount(), 1);
  });

  it('after the partner has answered: the order is sent again, and happens once', async (t) => {
    const at = await scene(t);
    await dieDelivering(at, killAt('order_answered'));
    assert.equal((await at.row()).status, 'sending');
    assert.equal(at.partner.ledger.effects(), 1);
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.equal(row?.status, 'sent');
    assert.equal(at.partner.requestCount(), 2);
    assert.equal(await storyOf(at.db, row.id), 'queued > sending > failed > queued > sending > sent');
  });

  it('after the settle is stored: the order is sent and is not sent again', async (t) => {
    const at = await scene(t);
    await dieDelivering(at, killAt('order_settled'));
    assert.equal((await at.row()).status, 'sent');
    await at.start();
    await at.place(['another-order']);
    await at.atRest();
    const [row] = await at.check();
    assert.ok(row?.status === 'sent' && row.retryCount === 0);
    assert.equal(at.partner.requestCount(), 2);
  });

  it('among 600 orders loses none of them and doubles none', async (t) => {
    const at = await scene(t);
    const orders = keysFrom('many', 600).map((key, i) =>
      i % 3 === 0 ? { key, orderingKey: `lane-${i % 5}` } : { key },
    );
    const victim = await at.start(killAt('order_answered', 4));
    await at.place(orders);
    assert.equal(await victim.died(), 'SIGKILL');
    assert.ok((await at.count('sent')) < 600, 'it died on the way');
    await at.start();
    await at.atRest();
    const rows = await at.check();
    assert.ok(rows.every(({ status }) => status === 'sent'));
  });
});

describe('Where the partner does nothing about doubles, a process that is killed', together, () => {
  it('before it has an answer leaves the order to a person, or asks; it is never sent again', async (t) => {
    const at = await scene(t, {
      ...askable,
      partner: { ...askable.partner, script: { otherwise: { act: 'hold' } } },
      destinations: ({ url }) => ({ blind: honest(url, { idempotency: 'none' }) }),
    });
    const victim = await at.start();
    await at.place(['asked-order', { key: 'blind-order', destination: 'blind' }]);
    await until('the partner has both', async () => at.partner.ledger.effects() === 2 || null);
    await victim.kill();
    assert.equal(await at.count('sending'), 2);
    at.partner.setScript({});
    await at.start();
    await at.atRest();
    const [asked, blind] = await at.check();
    assert.equal(asked?.status, 'sent');
    assert.ok(at.partner.questionCount() >= 1);
    assert.ok(blind?.status === 'dead' && blind.inDoubt);
    assert.match(blind.lastError ?? '', /^UNKNOWN: /);
    assert.deepEqual([at.partner.requestCount(), at.partner.ledger.effects()], [2, 2]);
  });

  it('before anything was sent, and the partner can be asked: the order is sent now', async (t) => {
    const at = await scene(t, askable);
    await dieDelivering(at, killAt('order_claimed'));
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.equal(row?.status, 'sent');
    assert.ok(at.partner.questionCount() >= 1);
    assert.equal(at.partner.requestCount(), 1);
  });

  it('at the last attempt has its order asked about once more, and not sent again', async (t) => {
    const at = await scene(t, { ...askable, env: { OUTBOX_RETRY_MAX: '0' } });
    await dieDelivering(at, killAt('order_answered'));
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.equal(row?.status, 'sent');
    assert.equal(at.partner.requestCount(), 1);
  });

  it('at the last attempt, and again when it asks, leaves an order that is dead', async (t) => {
    const at = await scene(t, { ...askable, env: { OUTBOX_RETRY_MAX: '0' } });
    await dieDelivering(at, killAt('order_claimed'));
    const second = await at.start(killAt('order_claimed'));
    assert.equal(await second.died(), 'SIGKILL');
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.ok(row?.status === 'dead' && row.inDoubt);
    assert.equal(row.lastError, 'UNKNOWN: lease expired');
    assert.equal(at.partner.requestCount(), 0);
  });
});

describe('A delivery whose database connection breaks', () => {
  it('settles what it was settling, once, and sends what it has claimed unknowingly later', async (t) => {
    const at = await scene(t);
    // A settle whose answer is lost is repeated, so each of the first two orders is settled twice.
    const replica = await at.start({
      faults: [
        { at: 'order_settled', act: 'lose_answer', nth: 1 },
        { at: 'order_settled', act: 'lose_answer', nth: 3 },
        { at: 'order_answered', act: 'lose_answer', nth: 5 },
        { at: 'order_claimed', act: 'lose_answer', nth: 4 },
      ],
    });
    const repeats = (): number => replica.log().split('retrying settle').length - 1;
    const settledAgain = (times: number): Promise<boolean> =>
      until('it settles again', async () => repeats() === times || null, { explain: replica.log });

    for (const order of [{ key: 'free-order' }, { key: 'lane-order', orderingKey: 'lane-of-one' }]) {
      await at.place([order]);
      await settledAgain(order.key === 'free-order' ? 1 : 2);
      await at.atRest();
    }
    await at.place(['unsettled-order']);
    await settledAgain(3);
    await at.atRest();
    for (const { id } of await at.rows()) assert.equal(await storyOf(at.db, id), 'queued > sending > sent');
    await at.place(['unheard-order']);
    await at.atRest();
    const rows = await at.check();
    assert.deepEqual(
      rows.map(({ status, retryCount }) => [status, retryCount]),
      [0, 0, 0, 1].map((retries) => ['sent', retries]),
    );
    assert.equal(at.partner.requestCount(), 4);
    assert.equal(await staleWritesOf(replica), 0);
  });
});
