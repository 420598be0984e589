import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { storyOf } from '../support/outbox-orders.ts';
import type { Partner } from '../support/partner.ts';
import type { FaultPlan } from './support/faults.ts';
import { openOutboxScene, untilStale, staleWritesOf, type OutboxScene } from './support/outbox-scene.ts';
import type { Replica } from './support/start-replica.ts';

type Scene = OutboxScene & Readonly<{ partner: Partner }>;

async function scene(t: TestContext, options: Parameters<typeof openOutboxScene>[0] = {}): Promise<Scene> {
  const at = await openOutboxScene(options);
  t.after(() => at.close());
  return at;
}

const careless = { partner: { honoursKeys: false }, broker: { idempotency: 'none' } } as const;

const sleepAt = (at: FaultPlan['faults'][number]['at']): FaultPlan => ({
  faults: [{ at, act: 'stop', nth: 1 }],
});

/** So long that nobody takes its orders away while it sleeps. */
const longLease = { OUTBOX_STUCK_THRESHOLD_MIN: '2' } as const;

/** A process with orders under way, which has fallen asleep. */
async function fallAsleep(at: Scene, plan: FaultPlan, orders = ['order-of-one']): Promise<Replica> {
  const sleeper = await at.start(plan);
  await at.place(orders);
  await sleeper.stopped();
  assert.equal(await at.count('sending'), orders.length);
  return sleeper;
}

describe('A replica that sleeps longer than its lease', { concurrency: 4 }, () => {
  it('sends nothing of what it had claimed, for another has sent it', async (t) => {
    const at = await scene(t);
    const sleeper = await fallAsleep(at, sleepAt('order_claimed'));
    await at.start();
    await at.atRest();
    const sent = await at.row();
    sleeper.resume();
    await untilStale(sleeper, 1);
    assert.deepEqual(await at.check(), [sent]);
    assert.equal(at.partner.requestCount(), 1);
  });

  it('leaves an order to whoever has it by then, who sends it no second time because of its late success', async (t) => {
    const at = await scene(t);
    const sleeper = await fallAsleep(at, sleepAt('order_answered'));
    const rescuer = await at.start(sleepAt('order_claimed'), longLease);
    await rescuer.stopped();
    const claimed = await at.row();
    assert.ok(claimed.status === 'sending' && claimed.ledger === 'accepted');
    sleeper.resume();
    await untilStale(sleeper, 1);
    assert.deepEqual(
      await at.row(),
      { ...claimed, ledger: 'succeeded' },
      'the order is as the rescuer has it',
    );
    rescuer.resume();
    await at.atRest();
    const [row] = await at.check();
    assert.ok(row?.status === 'sent' && row.epoch === claimed.epoch && row.retryCount === 1);
    assert.equal(at.partner.requestCount(), 1);
    assert.equal(await staleWritesOf(rescuer), 0);
    assert.equal(
      await storyOf(at.db, row.id),
      'queued > sending > failed > queued > sending > sending > sent',
    );
  });

  it('drops its late failure, whatever has become of the order', async (t) => {
    const at = await scene(t, { partner: { script: { rules: [refusedAtFirst] } } });
    const sleeper = await fallAsleep(at, sleepAt('order_answered'));
    const rescuer = await at.start(sleepAt('order_claimed'), longLease);
    await rescuer.stopped();
    const claimed = await at.row();
    sleeper.resume();
    await untilStale(sleeper, 1);
    assert.deepEqual(await at.row(), claimed);
    rescuer.resume();
    await at.atRest();
    const [row] = await at.check();
    assert.ok(row?.status === 'sent' && row.epoch === claimed.epoch);
  });

  it('brings an order back that died of not knowing, and leaves what a person has skipped', async (t) => {
    const at = await scene(t, careless);
    // The database is away for a while before and right after its sleep: by then both answers are there.
    const away = [1, 2, 3, 4, 5].map((nth) => ({ at: 'order_answered', act: 'lose_answer', nth }) as const);
    const plan = { faults: [{ at: 'order_answered', act: 'stop', nth: 5 } as const, ...away] };
    const sleeper = await fallAsleep(at, plan, ['skipped-order', 'waiting-order']);
    const other = await at.start();
    await at.atRest();
    const [skipped] = await at.rows('dead');
    assert.match(skipped?.lastError ?? '', /^UNKNOWN: /);
    const skip = (body: object) => other.post(`/api/v1/outbox/orders/${skipped?.id}/skip`, body);
    assert.equal((await skip({}))?.status, 409, 'they have to look at the partner first');
    assert.equal((await skip({ effect_checked: true }))?.status, 200);
    sleeper.resume();
    await untilStale(sleeper, 2);

    const rows = await at.check();
    assert.deepEqual(
      rows.map(({ status, ledger }) => [status, ledger]),
      [
        ['dead', 'succeeded'],
        ['sent', 'succeeded'],
      ],
    );
    assert.match(await storyOf(at.db, rows[1]?.id ?? 0n), /dead > sent$/);
    assert.equal(at.partner.ledger.effects(), 2);
    assert.deepEqual(await toldOf(at, rows[0]?.id), ['dead', 'late_success']);
    assert.equal((await skip({ effect_checked: true }))?.status, 409);
  });
});

/** What a person was told about an order. */
async function toldOf({ db }: Scene, id: bigint | undefined): Promise<readonly string[]> {
  const told = await db.query<{ kind: string }>(sql`
    SELECT kind FROM platform.notify_events WHERE item_id = ${String(id)} ORDER BY id`);
  return told.map(({ kind }) => kind);
}

const refusedAtFirst = { attempt: 1, does: { act: 'status', status: 400, effect: false } } as const;
