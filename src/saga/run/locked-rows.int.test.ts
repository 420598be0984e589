import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '../../../tests/support/eventually.ts';
import { done, openSagaScene, stepOf, type SagaScene } from '../../../tests/support/saga-engine.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());

const workflow: Workflow = { name: 'locked', deadlineMs: null, steps: [stepOf('reserve')] };

test('a saga that somebody has locked keeps no other from its lease, and is not lost itself', async (t) => {
  const [locked, other] = [await at.start(workflow), await at.start(workflow)];
  const goOn = Promise.withResolvers<void>();
  const called = new Set<string>();
  const engine = at.newEngine(
    async ({ saga }) => {
      called.add(saga.id);
      await goOn.promise;
      return done();
    },
    { leaseMs: 3000 },
  );
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  await eventually(() => assert.equal(called.size, 2));
  const leaseEnds = async (id: string): Promise<number> => {
    const [row] = await at.db.query<{ lease_until: Date }>(sql`
      SELECT lease_until FROM saga.saga_states WHERE id = ${id}`);
    return row?.lease_until.getTime() ?? 0;
  };

  await at.db.transaction(async (tx) => {
    await tx.query(sql`SELECT id FROM saga.saga_states WHERE id = ${locked} FOR UPDATE`);
    const [lockedUntil, otherUntil] = [await leaseEnds(locked), await leaseEnds(other)];
    await eventually(async () => {
      // A transaction that is idle for too long would be ended.
      await tx.query(sql`SELECT 1`);
      assert.ok((await leaseEnds(other)) > otherUntil);
    });
    assert.equal(await leaseEnds(locked), lockedUntil);
    assert.equal(engine.leasedCount(), 2);
  });
  const before = await leaseEnds(locked);
  await eventually(async () => assert.ok((await leaseEnds(locked)) > before));
  goOn.resolve();
  await at.ends(locked, 'COMPLETED');
  await at.ends(other, 'COMPLETED');
  assert.equal(called.size, 2);
  assert.equal(engine.stale(), 0);
});
