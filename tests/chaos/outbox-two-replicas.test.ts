import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { startOrderLoad } from './support/order-load.ts';
import { openOutboxScene, staleWritesOf, type OrderRow, type OutboxScene } from './support/outbox-scene.ts';
import type { Replica } from './support/start-replica.ts';
import { until } from './support/until.ts';

const isOf = ({ pid }: Replica, owner: string | null): boolean => owner?.includes(`-${pid}-`) === true;

async function underWay(at: OutboxScene, replica: Replica): Promise<readonly OrderRow[]> {
  return (await at.rows('sending')).filter(({ owner }) => isOf(replica, owner));
}

/** Who has ended orders, by the audit. */
async function sendersOf({ db }: OutboxScene): Promise<readonly string[]> {
  const rows = await db.query<{ actor: string }>(sql`
    SELECT DISTINCT actor FROM outbox.outbox_audit WHERE status_to = 'sent'`);
  return rows.map(({ actor }) => actor);
}

describe('Two replicas that deliver together', () => {
  it('share the work, and survive the long sleep of one and the death of the other', async (t) => {
    const at = await openOutboxScene({ partner: { script: { otherwise: { act: 'ok', delayMs: 30 } } } });
    t.after(() => at.close());
    const [first, second] = await Promise.all([at.start(), at.start()]);
    const load = startOrderLoad(at);
    t.after(() => load.stop());
    const sendMore = async (more: number): Promise<void> => {
      const before = await at.count('sent');
      await until('more is sent', async () => (await at.count('sent')) >= before + more || null, {
        explain: () => `${first.log()}\n--\n${second.log()}`,
      });
    };

    await until('both send', async () => {
      const senders = await sendersOf(at);
      return [first, second].every((replica) => senders.some((owner) => isOf(replica, owner)));
    });
    await until('the second has orders under way', async () => {
      second.pause();
      await second.stopped();
      if ((await underWay(at, second)).length > 0) return true;
      second.resume();
      return null;
    });
    const asleep = await underWay(at, second);
    await until('its orders are taken away', async () => (await underWay(at, second)).length === 0 || null);
    await sendMore(200);
    second.resume();
    await until('it has heard of that', async () => (await staleWritesOf(second)) >= asleep.length || null);
    await sendMore(200);
    await first.kill();
    await sendMore(200);
    await load.stop();

    await at.atRest();
    const rows = await at.check();
    assert.ok(rows.every(({ status }) => status === 'sent'));
  });
});
