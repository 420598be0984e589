import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openSagaScene, refused, stepOf, type SagaScene } from '../../../tests/support/saga-engine.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { requestAbort } from '../domain/request-abort.ts';
import { isTerminal, statuses, type SagaState } from '../domain/saga-state.ts';
import { storeAbort } from './abort-saga.ts';
import { settleStep, type StepRequest } from './act-on-step.ts';
import { sagaColumns, stateOf, type SagaRow } from '../saga-table.ts';
import type { SagaEvent } from '../write-sagas.ts';
import { testAct } from '../../../tests/support/acts.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());

const by = { actor: 'ann', reason: 'a mistake' };

const events: SagaEvent[] = [];
const settled: string[] = [];
const act = (sagaId: string, request: StepRequest) =>
  settleStep(
    {
      db: at.db,
      serviceOf: () => ({ isIdempotent: true }),
      addEvents: async (_tx, added) => void events.push(...added),
      onSettled: (before, { state }) => void settled.push(`${before.state.status} -> ${state.status}`),
    },
    sagaId,
    request,
    { act: testAct('saga:sagas:repair') },
  );

let workflows = 0;
const newSaga = (): Promise<string> => {
  workflows += 1;
  return at.start({ name: `abort-${workflows}`, deadlineMs: null, steps: [stepOf('reserve')] });
};

type LeaseRow = Readonly<{ lease_owner: string | null; lease_until: Date | null; lease_epoch: bigint }>;

async function readRow(id: string): Promise<SagaRow & LeaseRow> {
  const [row] = await at.db.query<SagaRow & LeaseRow>(sql`
    SELECT ${sagaColumns}, t.lease_owner, t.lease_until, t.lease_epoch FROM saga.saga_states t WHERE t.id = ${id}`);
  return row ?? assert.fail(`no saga ${id}`);
}

const cases = statuses.flatMap((status) =>
  [false, true].flatMap((pivotOpened) =>
    ([null, 'cancel', 'compensate'] as const).flatMap((earlier) =>
      (['waiting', 'leased', 'stuck'] as const)
        .filter((how) => how === 'waiting' || !isTerminal(status))
        .filter((how) => how !== 'stuck' || status !== 'STARTED')
        .map((how) => ({ status, pivotOpened, earlier, how })),
    ),
  ),
);

for (const { status, pivotOpened, earlier, how } of cases)
  test(`the SQL and the rule agree: ${status}, ${how}, pivot ${pivotOpened ? '' : 'not '}opened, requested before: ${earlier ?? 'never'}`, async () => {
    const id = await newSaga();
    await at.db.query(sql`
      UPDATE saga.saga_states
      SET status = ${status}, pivot_opened = ${pivotOpened}, abort_requested = ${earlier},
          abort_actor = ${earlier === null ? null : 'bob'}, abort_reason = ${earlier === null ? null : 'first'},
          wake_at = ${how === 'waiting' && !isTerminal(status) ? new Date('2099-01-01') : null},
          lease_owner = ${how === 'leased' ? 'w' : null}, lease_epoch = 5,
          lease_until = ${how === 'leased' ? new Date('2099-01-01') : null},
          needs_attention = ${how === 'stuck'}, stuck_step = ${how === 'stuck' ? 0 : null},
          stuck_op = ${how === 'stuck' ? 'EXECUTE' : null}, stuck_reason = ${how === 'stuck' ? 'no answer' : null}
      WHERE id = ${id}`);
    const before = await readRow(id);
    const ruled = requestAbort(stateOf(before, []), { kind: 'cancel', by, at: 0 });
    const result = await storeAbort(at.db, id, { kind: 'cancel', by, act: testAct('saga:sagas:cancel') });
    const after = await readRow(id);
    assert.equal(result.outcome, ruled.outcome);
    assert.equal('status' in result ? result.status : null, status);
    if (ruled.outcome !== 'stored') return assert.deepEqual(after, before);
    const { abort: ruledAbort, wakeAt: _, ...expected } = ruled.state;
    const { abort, wakeAt, ...written }: SagaState = stateOf(after, []);
    assert.deepEqual(written, expected);
    assert.deepEqual([abort?.kind, abort?.by], [ruledAbort?.kind, ruledAbort?.by]);
    const { lease_owner, lease_until, lease_epoch } = before;
    assert.deepEqual(
      [after.lease_owner, after.lease_until, after.lease_epoch],
      [lease_owner, lease_until, lease_epoch],
    );
    // The worker of a leased saga finds the request when it settles; nobody may claim the saga meanwhile.
    assert.equal(wakeAt !== null && wakeAt <= Date.now() + 60_000, how !== 'leased');
  });

test('of several concurrent requests the first is stored, and the others get unchanged', async () => {
  const id = await newSaga();
  const results = await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      storeAbort(at.db, id, {
        kind: n % 2 === 0 ? 'cancel' : 'compensate',
        act: testAct('saga:sagas:cancel'),
        by: { actor: `p${n}`, reason: 'x' },
      }),
    ),
  );
  const outcomes = results.map(({ outcome }) => outcome).toSorted();
  assert.deepEqual(outcomes, ['stored', ...Array.from({ length: 7 }, () => 'unchanged')]);
  const { abort_actor } = await readRow(id);
  assert.equal(results[Number(abort_actor?.slice(1))]?.outcome, 'stored');
});

test('a saga of the predecessor has no definition and cannot be undone', async () => {
  const [row] = await at.db.query<{ id: string }>(sql`
    INSERT INTO saga.saga_states (workflow_name, status) VALUES ('old', 'RUNNING') RETURNING id`);
  const id = row?.id ?? assert.fail();
  const result = await storeAbort(at.db, id, { kind: 'cancel', by, act: testAct('saga:sagas:cancel') });
  assert.equal(result.outcome, 'refused');
  assert.equal((await readRow(id)).wake_at, null);
  const acted = await act(id, { kind: 'retry', stepName: 'reserve', by });
  assert.equal(acted.outcome === 'refused' && acted.kind, 'conflict');
});

test('a reason is cleaned and cut before it is stored', async () => {
  const id = await newSaga();
  await storeAbort(at.db, id, {
    kind: 'cancel',
    act: testAct('saga:sagas:cancel'),
    by: { actor: 'ann', reason: `a\0b\ud800${'x'.repeat(5000)}` },
  });
  const { abort_reason } = await readRow(id);
  assert.match(abort_reason ?? '', /^a\ufffdb\ufffdx+$/);
  assert.ok(Buffer.byteLength(abort_reason ?? '') <= 1000);
});

test('an operator action publishes its events in the same transaction, takes a new epoch, and leaves no lease', async (t) => {
  const engine = at.newEngine(({ stepName, call }) =>
    stepName === 'charge' || call.op === 'COMPENSATE' ? refused() : undefined,
  );
  const steps = [stepOf('reserve'), stepOf('charge')];
  const id = await at.start({ name: 'told', deadlineMs: null, steps });
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  await at.until(id, ({ needs_attention }) => needs_attention);
  const before = await readRow(id);
  const resolve = { kind: 'resolve', stepName: 'reserve', by } as const;
  const early = await act(id, resolve);
  assert.ok(early.outcome === 'refused' && early.retryAfterMs !== undefined && early.retryAfterMs > 0);
  assert.deepEqual(await readRow(id), before);
  assert.deepEqual([events, settled], [[], []]);

  await at.db.query(sql`
    UPDATE saga.saga_step_logs SET started_at = started_at - interval '1 hour' WHERE saga_id = ${id}`);
  assert.deepEqual(await act(id, resolve), { outcome: 'done', status: 'FAILED' });
  const after = await readRow(id);
  assert.ok(after.lease_epoch > before.lease_epoch);
  assert.deepEqual([after.lease_owner, after.lease_until, after.wake_at], [null, null, null]);
  assert.deepEqual(
    events.map(({ sagaId, type }) => [sagaId, type]),
    [[id, 'SAGA_FAILED']],
  );
  assert.deepEqual(settled, ['COMPENSATING -> FAILED']);
});

test('a cancel resets the failed rounds of a saga that needs attention, and of no other', async () => {
  for (const needsAttention of [true, false]) {
    const id = await newSaga();
    await at.db.query(sql`
      UPDATE saga.saga_states
      SET status = 'RUNNING', failed_rounds = 4, runs_alone = true, needs_attention = ${needsAttention},
          stuck_step = ${needsAttention ? 0 : null}, stuck_op = ${needsAttention ? 'EXECUTE' : null}
      WHERE id = ${id}`);
    assert.equal(
      (await storeAbort(at.db, id, { kind: 'cancel', by, act: testAct('saga:sagas:cancel') })).outcome,
      'stored',
    );
    const { failed_rounds, runs_alone } = await readRow(id);
    assert.deepEqual([failed_rounds, runs_alone], needsAttention ? [0, false] : [4, true]);
  }
});
