import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openSagaScene, refused, stepOf, type SagaScene } from '../../../tests/support/saga-engine.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';
import { settleStep } from './act-on-step.ts';
import { findStuck, previewStuck, type StuckFilter } from './find-stuck.ts';
import { retrySaga } from './retry-sagas.ts';
import { testAct } from '../../../tests/support/acts.ts';

let at: SagaScene;
let ids: readonly string[];
before(async () => {
  at = await openSagaScene();
  ids = (await Promise.all(Array.from({ length: 5 }, () => at.start(workflow)))).toSorted();
  const engine = at.newEngine((call) =>
    call.call.op === 'COMPENSATE' || call.stepName === 'pay' ? refused() : undefined,
  );
  await engine.start();
  for (const id of ids) await at.until(id, (saga) => saga.needs_attention);
  await engine.stop(AbortSignal.timeout(500));
});
after(() => at.drop());

const workflow: Workflow = { name: 'order', deadlineMs: null, steps: [stepOf('reserve'), stepOf('pay')] };
const everything: StuckFilter = {
  workflowName: null,
  stepName: null,
  op: null,
  errorClass: null,
  createdFrom: null,
  createdTo: null,
  stuckFrom: null,
  stuckTo: null,
  sagaIds: null,
};
const serviceOf = () => ({ isIdempotent: true });
const by = { actor: 'ann', reason: 'it is back' };

test('many stuck sagas are scanned in steps, and a scan that ends early says so', async () => {
  const found = await findStuck(at.db, everything, 3, { serviceOf, stepRows: 2 });
  assert.deepEqual(
    found.sagas.map(({ sagaId }) => sagaId),
    ids.slice(0, 3),
  );
  assert.deepEqual([found.matched, found.isAll], [5, true]);
  const early = await findStuck(at.db, everything, 10, {
    serviceOf,
    stepRows: 2,
    until: AbortSignal.abort(),
  });
  assert.deepEqual([early.sagas.length, early.isAll], [2, false]);
  const seen = await previewStuck(at.db, everything, { serviceOf, stepRows: 2 });
  assert.deepEqual([seen.matched, seen.isMore, seen.sample.length], [5, false, 5]);
});

test('stuck sagas are found by their index, however many others there are', async () => {
  await at.db.query(sql`
    INSERT INTO saga.saga_states (workflow_name, status, lease_epoch)
    SELECT 'order', 'COMPLETED', 1 FROM generate_series(1, 20000)`);
  await at.db.query(sql`VACUUM ANALYZE saga.saga_states`);
  const plan = await at.db.query<{ 'QUERY PLAN': string }>(sql`
    EXPLAIN SELECT t.id FROM saga.saga_states t WHERE t.needs_attention AND t.id > ${ids[0]} ORDER BY t.id LIMIT 2000`);
  assert.match(plan.map((line) => line['QUERY PLAN']).join('\n'), /idx_saga_states_stuck/);
});

test('a saga that has changed since it was selected is skipped', async () => {
  const deps = { db: at.db, serviceOf, addEvents: null };
  const { sagas } = await findStuck(at.db, everything, 10, { serviceOf });
  const [first, second, third] = sagas;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  // Somebody retried it meanwhile, and it is stuck at the same step again.
  await at.db.query(sql`
    UPDATE saga.saga_states SET lease_epoch = nextval('platform.lease_epochs') WHERE id = ${first.sagaId}`);
  assert.equal(await retrySaga(deps, first, by, false), 'changed');
  assert.equal((await at.find(first.sagaId)).needs_attention, true);
  assert.equal(await retrySaga(deps, second, by, false), null);
  assert.equal(await retrySaga(deps, second, by, false), 'changed');
  await settleStep(
    deps,
    third.sagaId,
    { kind: 'retry', stepName: third.stepName, by },
    { act: testAct('saga:sagas:repair') },
  );
  assert.equal(await retrySaga(deps, third, by, false), 'changed');
});

test('a call in doubt is not repeated in bulk after its service was unconfigured for a while', async () => {
  const id = await at.start(workflow);
  // A process was lost during the undo, the next one lacked the service.
  await at.db.query(sql`
    INSERT INTO saga.saga_step_logs (saga_id, step_index, step_name, action, attempt, status, answer, is_unsent, completed_at)
    VALUES (${id}, 0, 'reserve', 'EXECUTE', 1, 'SUCCESS', 'done', false, now()),
           (${id}, 1, 'pay', 'EXECUTE', 1, 'FAILED', 'refused', false, now()),
           (${id}, 0, 'reserve', 'COMPENSATE', 1, 'TIMEOUT', 'unknown', false, now()),
           (${id}, 0, 'reserve', 'COMPENSATE', 2, 'FAILED', 'unserved', true, now())`);
  await at.db.query(sql`
    UPDATE saga.saga_states
    SET status = 'COMPENSATING', current_step = 1, compensation = 'stuck', needs_attention = true, stuck_step = 0,
        stuck_op = 'COMPENSATE', stuck_reason = 'not configured', error_message = 'pay: no', wake_at = NULL
    WHERE id = ${id}`);
  const depsWith = (isIdempotent: boolean | undefined) => ({
    db: at.db,
    serviceOf: () => (isIdempotent === undefined ? undefined : { isIdempotent }),
    addEvents: null,
  });
  const doubtful = { ...everything, errorClass: 'unserved' as const };
  for (const isIdempotent of [false, undefined]) {
    const deps = depsWith(isIdempotent);
    const found = await findStuck(at.db, doubtful, 10, deps);
    assert.deepEqual([found.sagas, found.notRetryable], [[], [{ sagaId: id, why: 'not_idempotent' }]]);
    assert.equal((await previewStuck(at.db, doubtful, deps)).notRetryable, 1);
  }
  const [saga] = (await findStuck(at.db, doubtful, 10, depsWith(true))).sagas;
  assert.ok(saga !== undefined, 'an idempotent service is called again');
  assert.equal(await retrySaga(depsWith(false), saga, by, false), 'not_idempotent');
  assert.equal((await at.find(id)).needs_attention, true);
  assert.equal((await findStuck(at.db, { ...doubtful, sagaIds: [id] }, 10, depsWith(false))).sagas.length, 1);
  assert.equal(await retrySaga(depsWith(false), saga, by, true), null);
});
