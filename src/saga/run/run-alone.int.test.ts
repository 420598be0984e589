import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '../../../tests/support/eventually.ts';
import { done, openSagaScene, stepOf, type SagaScene } from '../../../tests/support/saga-engine.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';
import { releaseSagas } from './release-sagas.ts';
import { storeWorkflow } from '../define/workflows-table.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());

const workflowOf = (name: string): Workflow => ({
  name,
  deadlineMs: null,
  steps: [stepOf('reserve', { timeoutMs: 60_000 }), stepOf('charge')],
});

/** In one transaction: an engine that runs would claim it as any other saga. */
async function startAlone(): Promise<string> {
  await storeWorkflow(at.db, workflowOf('alone'), { isFromFile: false });
  return at.db.transaction(async (tx) => {
    const [row] = await tx.query<{ saga_id: string }>(
      sql`SELECT saga_id FROM saga.start_saga('alone', '{}'::jsonb)`,
    );
    const id = row?.saga_id ?? assert.fail('it was not started');
    await tx.query(sql`UPDATE saga.saga_states SET failed_rounds = 2, runs_alone = true WHERE id = ${id}`);
    return id;
  });
}

test('one process has a saga that is to run alone, and until it lets go no other looks for one', async () => {
  const ids = [await startAlone(), await startAlone()];
  const engine = at.engineSql();
  assert.equal(await engine.hasDueAlone(), true);
  const [first] = await engine.claim({ limit: 1, bytes: 1, leaseMs: 15_000, alone: true });
  assert.ok(first !== undefined && ids.includes(first.id));
  assert.equal(await engine.hasDueAlone(), false);
  await releaseSagas(at.db, first.lease, [{ id: first.id, pauseMs: 60_000, isFailedRound: true }]);
  assert.equal(await engine.hasDueAlone(), true);
  await at.db.query(sql`UPDATE saga.saga_states SET wake_at = NULL`);
});

test('while one process makes room, the others work on', async (t) => {
  const hangs = Promise.withResolvers<void>();
  // Also where the test fails: nothing that hangs ever ends by itself.
  t.after(() => hangs.resolve());
  const hanging = [0, 0];
  for (const index of hanging.keys()) {
    const engine = at.newEngine(async ({ stepName }) => {
      if (stepName === 'hang') {
        hanging[index] = (hanging[index] ?? 0) + 1;
        await hangs.promise;
      }
      return done();
    });
    await engine.start();
    t.after(() => engine.stop(AbortSignal.timeout(500)));
  }
  const slow: Workflow = { ...workflowOf('slow'), steps: [stepOf('hang', { timeoutMs: 60_000 })] };
  const slowIds: string[] = [];
  await eventually(async () => {
    slowIds.push(await at.start(slow));
    assert.ok(hanging.every((count) => count > 0));
  });
  const alone = await startAlone();
  await at.until(alone, ({ lease_owner }) => lease_owner !== null);
  for (let i = 0; i < 20; i += 1) await at.ends(await at.start(workflowOf('fast')), 'COMPLETED');
  assert.equal((await at.find(alone)).status, 'STARTED', 'it waits for room');
  hangs.resolve();
  for (const id of [alone, ...slowIds]) await at.ends(id, 'COMPLETED');
});
