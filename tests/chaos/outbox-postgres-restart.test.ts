import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { untilReadiness } from './support/readiness.ts';
import { startRestartablePostgres } from './support/restartable-postgres.ts';
import { honest, keysFrom, openOutboxScene } from './support/outbox-scene.ts';
import { until } from './support/until.ts';

describe('When PostgreSQL crashes in the middle of a batch and comes back', () => {
  it('no order is lost, and none happens twice, whatever the partner promises', async (t) => {
    const postgres = await startRestartablePostgres();
    t.after(() => postgres.stop());
    const at = await openOutboxScene({
      database: postgres,
      partner: { script: { otherwise: { act: 'ok', delayMs: 20 } } },
      destinations: ({ url }) => ({ blind: honest(url, { idempotency: 'none' }) }),
    });
    t.after(() => at.close());
    const replica = await at.start();
    await untilReadiness(replica, 'healthy');
    await at.place([
      ...keysFrom('believed', 1500).map((key, i) =>
        i % 3 === 0 ? { key, orderingKey: `lane-${i % 20}` } : { key },
      ),
      ...keysFrom('blind', 500).map((key) => ({ key, destination: 'blind' })),
    ]);
    for (const sentBefore of [100, 600]) {
      await until('many are sent', async () => (await at.count('sent')) >= sentBefore || null);
      await postgres.crash();
      await untilReadiness(replica, 'unhealthy');
      await postgres.restart();
    }
    await untilReadiness(replica, 'healthy');
    await at.atRest();

    const rows = await at.check();
    const left = rows.filter(({ status }) => status !== 'sent');
    assert.ok(left.every(({ key, inDoubt }) => key.startsWith('blind') && inDoubt));
    const blind = at.partner.requests.filter(({ key }) => key.startsWith('blind')).map(({ key }) => key);
    assert.equal(new Set(blind).size, blind.length, 'without a promise nothing is asked for twice');
    assert.ok(left.length < 300, `${left.length} are left to a person`);
  });
});
