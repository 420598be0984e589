import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { storyOf } from '../support/outbox-orders.ts';
import type { Partner } from '../support/partner.ts';
import type { FaultPlan } from './support/faults.ts';
import {
  keysFrom,
  openOutboxScene,
  staleWritesOf,
  type OutboxScene,
  type Outside,
  type OrderRow,
} from './support/outbox-scene.ts';
import { until } from './support/until.ts';

type Scene = OutboxScene & Readonly<{ partner: Partner }>;

async function scene(t: TestContext, options: Parameters<typeof openOutboxScene>[0] = {}): Promise<Scene> {
  const at = await openOutboxScene(options);
  t.after(() => at.close());
  return at;
}

/** A partner for whom every request is an effect, and a destination that promises nothing. */
const careless = { partner: { honoursKeys: false }, broker: { idempotency: 'none' } } as const;

/** The same, but it can be asked what has happened. */
const carelessWithStatus = {
  ...careless,
  broker: ({ statusUrl }: Outside) => ({ ...careless.broker, status_url: statusUrl }),
};

/** Delivers one order in a process that dies on the way. */
async function dieDelivering(
  at: Scene,
  plan: FaultPlan,
  orders = ['order-of-one'],
): Promise<readonly OrderRow[]> {
  const victim = await at.start(plan);
  await at.place(orders);
  assert.equal(await victim.died(), 'SIGKILL');
  return at.rows('sending');
}

const killAt = (at: FaultPlan['faults'][number]['at'], nth?: number): FaultPlan => ({
  faults: [{ at, act: 'kill', ...(nth === undefined ? {} : { nth }) }],
});

const together = { concurrency: 3 } as const;

describe('A process that is killed while it delivers an order', together, () => {
  it('after the claim has sent nothing: it costs one retry, and the order is sent once', async (t) => {
    const at = await scene(t);
    const crash = await dieDelivering(at, killAt('order_claimed'));
    assert.equal(crash.length, 1);
    assert.equal(at.partner.requestCount(), 0);
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.ok(row?.status === 'sent' && row.retryCount === 1 && row.inDoubt);
    assert.equal(at.partner.requestCount(), 1);
  });

  it('after the partner has answered: the order is sent again, and happens once', async (t) => {
    const at = await scene(t);
    const crash = await dieDelivering(at, killAt('order_answered'));
    assert.equal(crash.length, 1);
    assert.equal(at.partner.ledger.effects(), 1);
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.equal(row?.status, 'sent');
    assert.equal(at.partner.requestCount(), 2);
    assert.equal(await storyOf(at.db, row.id), 'queued > sending > failed > queued > sending > sent');
  });

  it('while the partner has not answered yet: the order is sent again, and happens once', async (t) => {
    const at = await scene(t, { partner: { script: { otherwise: { act: 'hold' } } } });
    const victim = await at.start();
    await at.place(['order-of-one']);
    await until('the partner has it', async () => at.partner.requestCount() > 0 || null);
    await victim.kill();
    assert.equal((await at.row()).status, 'sending');
    at.partner.setScript({});
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.equal(row?.status, 'sent');
  });

  it('after the settle is stored: the order is sent and is not sent again', async (t) => {
    const at = await scene(t);
    assert.deepEqual(await dieDelivering(at, killAt('order_settled')), []);
    await at.start();
    const [row] = await at.check();
    assert.ok(row?.status === 'sent' && row.retryCount === 0);
    assert.equal(at.partner.requestCount(), 1);
  });

  it('at every attempt leaves an order that is dead and says that nobody knows', async (t) => {
    const at = await scene(t, { env: { OUTBOX_RETRY_MAX: '1' } });
    await dieDelivering(at, killAt('order_claimed'));
    const second = await at.start(killAt('order_claimed'));
    assert.equal(await second.died(), 'SIGKILL');
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.ok(row?.status === 'dead' && row.retryCount === 1);
    assert.equal(row.lastError, 'UNKNOWN: lease expired');
    assert.equal(at.partner.requestCount(), 0);
  });

  for (const point of ['order_claimed', 'order_answered', 'order_settled'] as const)
    it(`among 600 orders, ${point}, loses none of them and doubles none`, async (t) => {
      const at = await scene(t);
      const orders = keysFrom('many', 600).map((key, i) =>
        i % 3 === 0 ? { key, orderingKey: `lane-${i % 5}` } : { key },
      );
      const victim = await at.start(killAt(point, 4));
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
  it('after the partner has answered leaves the order to a person: it is not sent again', async (t) => {
    const at = await scene(t, careless);
    await dieDelivering(at, killAt('order_answered'));
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.ok(row?.status === 'dead' && row.inDoubt);
    assert.match(row.lastError ?? '', /^UNKNOWN: /);
    assert.equal(at.partner.requestCount(), 1);
    assert.equal(at.partner.ledger.effects(), 1);
  });

  it('before anything was sent leaves it to a person too, for nobody knows', async (t) => {
    const at = await scene(t, careless);
    await dieDelivering(at, killAt('order_claimed'));
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.ok(row?.status === 'dead' && row.inDoubt);
    assert.equal(at.partner.requestCount(), 0);
  });

  it('after the partner has answered, and the partner can be asked: the order is sent without a second effect', async (t) => {
    const at = await scene(t, carelessWithStatus);
    await dieDelivering(at, killAt('order_answered'));
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.equal(row?.status, 'sent');
    assert.equal(at.partner.requestCount(), 1);
    assert.ok(at.partner.questionCount() >= 1);
  });

  it('before anything was sent, and the partner can be asked: the order is sent now', async (t) => {
    const at = await scene(t, carelessWithStatus);
    await dieDelivering(at, killAt('order_claimed'));
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.equal(row?.status, 'sent');
    assert.equal(at.partner.requestCount(), 1);
    assert.ok(at.partner.questionCount() >= 1);
  });
});

describe('Where the partner can be asked, a process that is killed at the last attempt', together, () => {
  it('has its order asked about once more, and not sent again', async (t) => {
    const at = await scene(t, { ...carelessWithStatus, env: { OUTBOX_RETRY_MAX: '0' } });
    await dieDelivering(at, killAt('order_answered'));
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.equal(row?.status, 'sent');
    assert.equal(at.partner.requestCount(), 1);
  });

  it('and again when it is asked about leaves an order that is dead', async (t) => {
    const at = await scene(t, { ...carelessWithStatus, env: { OUTBOX_RETRY_MAX: '0' } });
    await dieDelivering(at, killAt('order_claimed'));
    const second = await at.start(killAt('order_claimed'));
    assert.equal(await second.died(), 'SIGKILL');
    await at.start();
    await at.atRest();
    const [row] = await at.check();
    assert.ok(row?.status === 'dead' && row.inDoubt);
    assert.equal(at.partner.requestCount(), 0);
  });
});

describe('A delivery whose database connection breaks', together, () => {
  for (const [what, orderingKey] of [
    ['an order', undefined],
    ['an order with a key', 'lane-of-one'],
  ] as const)
    it(`after the settle of ${what} was stored is settled once, and is no stale write`, async (t) => {
      const at = await scene(t);
      const replica = await at.start({ faults: [{ at: 'order_settled', act: 'lose_answer', nth: 1 }] });
      await at.place([{ key: 'first-order', ...(orderingKey === undefined ? {} : { orderingKey }) }]);
      await until('it settles again', async () => replica.log().includes('settling is tried again') || null);
      // There is one queue: when the second order is settled, the first has been settled again.
      await at.place(['second-order']);
      await at.atRest();
      for (const { id } of await at.rows()) assert.equal(await storyOf(at.db, id), 'queued > sending > sent');
      assert.equal(await staleWritesOf(replica), 0);
      assert.equal(at.partner.requestCount(), 2);
      await at.check();
    });

  it('before the settle was stored settles it all the same, without a second send', async (t) => {
    const at = await scene(t);
    await at.start({ faults: [{ at: 'order_answered', act: 'lose_answer', nth: 1 }] });
    await at.place(['order-of-one']);
    await at.atRest();
    const [row] = await at.check();
    assert.ok(row?.status === 'sent' && row.retryCount === 0);
    assert.equal(at.partner.requestCount(), 1);
  });

  it('after the claim, which it never hears of, sends the order when that claim is over', async (t) => {
    const at = await scene(t);
    await at.start({ faults: [{ at: 'order_claimed', act: 'lose_answer', nth: 1 }] });
    await at.place(['order-of-one']);
    await at.atRest();
    const [row] = await at.check();
    assert.ok(row?.status === 'sent' && row.retryCount === 1);
    assert.equal(at.partner.requestCount(), 1);
  });
});
