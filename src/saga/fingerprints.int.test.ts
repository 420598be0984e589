import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  done,
  openSagaScene,
  refused,
  stepOf,
  type Participant,
  type SagaScene,
  type TestEngineOptions,
} from '../../tests/support/saga-engine.ts';
import { sql } from '../platform/postgres/sql.ts';
import { storeAbort } from './decide/abort-saga.ts';
import type { Workflow } from './domain/workflow/workflow.ts';
import { findSaga } from './browse/find-saga.ts';
import { listSagas } from './browse/list-sagas.ts';
import { testAct } from '../../tests/support/acts.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());

const workflow: Workflow = {
  name: 'order',
  deadlineMs: null,
  steps: [stepOf('reserve'), stepOf('charge', { isPivot: true }), stepOf('ship')],
};

/** Runs one saga with this participant until it ends or needs attention. */
async function run(participant: Participant, options: TestEngineOptions = {}): Promise<string> {
  const id = await at.start(workflow);
  const engine = at.newEngine(participant, options);
  await engine.start();
  await at.until(
    id,
    ({ status, needs_attention }) => status === 'FAILED' || status === 'COMPLETED' || needs_attention,
  );
  await engine.stop(AbortSignal.timeout(500));
  return id;
}

async function fingerprintsOf(
  id: string,
): Promise<Readonly<{ saga: string | null; steps: readonly string[] }>> {
  const found = (await findSaga(at.db, id)) ?? assert.fail();
  return {
    saga: found.saga.fingerprint,
    steps: found.log.map(
      ({ stepName, action, errorMessage, fingerprint }) =>
        `${action === 'EXECUTE' ? '' : 'undo '}${stepName} ${errorMessage} ${fingerprint === null ? '-' : fingerprint === found.saga.fingerprint ? 'of the saga' : 'own'}`,
    ),
  };
}

const firstPage = { by: 'keyset', page: 1, after: null, pageSize: 20 } as const;

test('sagas that are undone for the same failure have its fingerprint, whatever varies in its text', async () => {
  const ids: string[] = [];
  for (const n of [1, 2])
    ids.push(
      await run(({ stepName }) =>
        stepName === 'charge' ? refused(`HTTP 409: card ${n} is blocked`) : done(),
      ),
    );
  const [first, second] = await Promise.all(ids.map(fingerprintsOf));
  assert.match(first?.saga ?? '', /^v2:[0-9a-f]{32}$/);
  assert.equal(second?.saga, first?.saga);
  assert.deepEqual(first?.steps, [
    'reserve null -',
    'undo reserve null -',
    'charge HTTP 409: card 1 is blocked of the saga',
  ]);
  const other = await run(({ stepName }) =>
    stepName === 'charge' ? refused('HTTP 410: card 1 is blocked') : done(),
  );
  assert.notEqual((await fingerprintsOf(other)).saga, first?.saga);
  const { sagas } = await listSagas(at.db, { fingerprint: first?.saga ?? '' }, firstPage);
  assert.deepEqual(sagas.map(({ sagaId }) => sagaId).toSorted(), ids.toSorted());
});

test('a saga that is stuck has the fingerprint of the failure that it is stuck at, without the reason around it', async () => {
  const id = await run(({ stepName, call }) => {
    if (call.op === 'COMPENSATE') return refused('the ledger is closed');
    return stepName === 'charge' ? refused('no money') : done();
  });
  const { saga, steps } = await fingerprintsOf(id);
  assert.notEqual(saga, null);
  assert.ok(steps.includes('undo reserve the ledger is closed of the saga'), steps.join('\n'));
  assert.ok(steps.includes('charge no money own'), steps.join('\n'));
});

test('a saga that goes well has none, and one that a person cancels loses it', async () => {
  assert.equal((await fingerprintsOf(await run(() => done()))).saga, null);
  const stuck = await run(() => done(), { services: [] });
  assert.notEqual((await fingerprintsOf(stuck)).saga, null);
  await storeAbort(at.db, stuck, {
    kind: 'cancel',
    by: { actor: 'ann', reason: 'a mistake' },
    act: testAct('saga:sagas:cancel'),
  });
  assert.equal((await fingerprintsOf(stuck)).saga, null);
});

test('the sagas of a fingerprint are found by its index', async () => {
  await at.db.query(sql`
    INSERT INTO saga.saga_states (workflow_name, status, fingerprint)
    SELECT 'order', 'FAILED', CASE WHEN n % 2 = 0 THEN 'v2:' || n % 500 END FROM generate_series(1, 20000) n`);
  await at.db.query(sql`VACUUM ANALYZE saga.saga_states`);
  const plan = await at.db.query<{ 'QUERY PLAN': string }>(sql`
    EXPLAIN SELECT t.id FROM saga.saga_states t WHERE t.fingerprint = 'v2:24' LIMIT 10001`);
  assert.match(plan.map((line) => line['QUERY PLAN']).join('\n'), /idx_saga_states_fingerprint/);
});
