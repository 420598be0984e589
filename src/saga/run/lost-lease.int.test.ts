import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { done, openSagaScene, stepOf, type SagaScene } from '../../../tests/support/saga-engine.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { advance } from '../domain/advance.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';
import type { LeasedSaga } from './leased-sagas.ts';
import type { SagaSettle } from '../write-sagas.ts';
import { reapSagas } from './reap-sagas.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { createSettleBatch } from './settle-sagas.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());

const settleBatch = () =>
  createSettleBatch({ db: at.db, worker: createTestWorker(at.db, 'reaper'), addEvents: null });

const workflow = (name: string): Workflow => ({
  name,
  deadlineMs: null,
  steps: [stepOf('reserve'), stepOf('charge')],
});

/** What a claim of it leads to, with the call that it opens. */
function opening(saga: LeasedSaga): SagaSettle {
  const decided = advance(saga.workflow, saga.state, { kind: 'claimed' }, context);
  assert.ok(decided.outcome === 'settle' && decided.next.do === 'call');
  const { attempt, state } = decided.next.opening;
  const known = { abort: null, isDeadlineOver: false };
  return { saga, known, state, changed: decided.changed, added: [attempt], events: [], keepsLease: true };
}

const context = { now: Date.now(), random: () => 0.5, serviceOf: () => ({ isIdempotent: true }) };

async function claimOne(): Promise<LeasedSaga> {
  const [saga] = await at.engineSql().claim({ limit: 1, bytes: 1, leaseMs: 15_000, alone: false });
  return saga ?? assert.fail('nothing was due');
}

test('whoever has a saga twice, once without knowing that it has lost it, settles it once', async () => {
  const id = await at.start(workflow('twice'));
  const lost = await claimOne();
  await at.db.query(sql`UPDATE saga.saga_states SET lease_until = now() WHERE id = ${id}`);
  assert.equal(await reapSagas(at.db), 1);
  const held = await claimOne();
  const results = await settleBatch()([opening(lost), opening(held)]);
  assert.deepEqual(
    results.map(({ outcome }) => outcome),
    ['stale', 'settled'],
  );
});

test('of a saga that was lost not even the log is written, beside one that is settled', async () => {
  const lostId = await at.start(workflow('lost'));
  const lost = await claimOne();
  await at.start(workflow('kept'));
  const kept = await claimOne();
  await at.db.query(sql`UPDATE saga.saga_states SET lease_epoch = lease_epoch + 1 WHERE id = ${lostId}`);
  const results = await settleBatch()([opening(lost), opening(kept)]);
  assert.deepEqual(
    results.map(({ outcome }) => outcome),
    ['stale', 'settled'],
  );
  const logs = await at.db.query<{ saga_id: string }>(sql`
    SELECT saga_id FROM saga.saga_step_logs WHERE saga_id IN (${lostId}, ${kept.id})`);
  assert.deepEqual(logs, [{ saga_id: kept.id }]);
});

test('attempts are counted by their numbers, whatever the clocks of their processes said', async (t) => {
  const id = await at.start(workflow('backwards'));
  await at.db.query(sql`
    UPDATE saga.saga_states SET status = 'RUNNING', wake_at = now() WHERE id = ${id}`);
  await at.db.query(sql`
    INSERT INTO saga.saga_step_logs
      (saga_id, step_index, step_name, action, attempt, status, answer, error_message, started_at, completed_at)
    VALUES (${id}, 0, 'reserve', 'EXECUTE', 1, 'TIMEOUT', 'unknown', 'no answer', now(), now()),
           (${id}, 0, 'reserve', 'EXECUTE', 2, 'TIMEOUT', 'unknown', 'no answer', now() - interval '1 s', now())`);
  const engine = at.newEngine(() => done());
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  await at.ends(id, 'COMPLETED');
});
