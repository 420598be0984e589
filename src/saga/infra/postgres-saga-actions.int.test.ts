import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openSagaScene, refused, stepOf, type SagaScene } from '../../../tests/support/saga-engine.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { requestAbort } from '../domain/request-abort.ts';
import { isTerminal, statuses, type SagaState } from '../domain/saga-state.ts';
import { createPostgresSagaActions } from './postgres-saga-actions.ts';
import { sagaColumns, stateOf, type SagaRow } from './saga-rows.ts';
import type { SagaEvent } from './settle-sagas.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());

const by = { actor: 'ann', reason: 'a mistake' };

const events: SagaEvent[] = [];
const settled: string[] = [];
const actionsOf = () =>
  createPostgresSagaActions({
    db: at.db,
    serviceOf: () => ({ isIdempotent: true }),
    addEvents: async (_tx, told) => void events.push(...told),
    onSettled: (before, { state }) => void settled.push(`${before.state.status} -> ${state.status}`),
  });

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
  test(`the database and the rule agree: ${status}, ${how}, pivot ${pivotOpened ? '' : 'not '}opened, asked before: ${earlier ?? 'never'}`, async () => {
    const id = await newSaga();
    await at.db.query(sql`
      UPDATE saga.saga_states
      SET status = ${status}, pivot_opened = ${pivotOpened}, abort_requested = ${earlier},
          abort_actor = ${earlier === null ? null : 'bob'}, abort_reason = ${earlier === null ? null : 'first'},
          wake_at = ${how === 'waiting' && !isTerminal(status) ? new Date('2099-01-01') : null},
          lease_owner = ${how === 'leased' ? 'w' : null}, lease_epoch = 5,
          lease_until = ${how === 'leased' ? new Date('2099-01-01') : null},
          needs_person = ${how === 'stuck'}, stuck_step = ${how === 'stuck' ? 0 : null},
          stuck_op = ${how === 'stuck' ? 'EXECUTE' : null}, stuck_reason = ${how === 'stuck' ? 'no answer' : null}
      WHERE id = ${id}`);
    const before = await readRow(id);
    const ruled = requestAbort(stateOf(before, []), { kind: 'cancel', by, at: 0 });
    const result = await actionsOf().request(id, { kind: 'cancel', by });
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
    // Whoever holds it finds the wish when it settles; beside it nobody may claim the saga.
    assert.equal(wakeAt !== null && wakeAt <= Date.now() + 60_000, how !== 'leased');
  });

test('of many who ask at once the first is heard, and the others are told so', async () => {
  const id = await newSaga();
  const actions = actionsOf();
  const results = await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      actions.request(id, {
        kind: n % 2 === 0 ? 'cancel' : 'compensate',
        by: { actor: `p${n}`, reason: 'x' },
      }),
    ),
  );
  const outcomes = results.map(({ outcome }) => outcome).toSorted();
  assert.deepEqual(outcomes, ['stored', ...Array.from({ length: 7 }, () => 'unchanged')]);
  const { abort_actor } = await readRow(id);
  assert.equal(results[Number(abort_actor?.slice(1))]?.outcome, 'stored');
});

test('a saga of another system has no definition, and cannot be undone from here', async () => {
  const [row] = await at.db.query<{ id: string }>(sql`
    INSERT INTO saga.saga_states (workflow_name, status) VALUES ('old', 'RUNNING') RETURNING id`);
  const id = row?.id ?? assert.fail();
  const result = await actionsOf().request(id, { kind: 'cancel', by });
  assert.equal(result.outcome, 'refused');
  assert.equal((await readRow(id)).wake_at, null);
  const act = await actionsOf().act(id, { kind: 'retry', stepName: 'reserve', by });
  assert.equal(act.outcome === 'refused' && act.kind, 'conflict');
});

test('what people say is stored as it can be stored', async () => {
  const id = await newSaga();
  await actionsOf().request(id, {
    kind: 'cancel',
    by: { actor: 'ann', reason: `a\0b\ud800${'x'.repeat(5000)}` },
  });
  const { abort_reason } = await readRow(id);
  assert.match(abort_reason ?? '', /^a\ufffdb\ufffdx+$/);
  assert.ok(Buffer.byteLength(abort_reason ?? '') <= 1000);
});

test('what a person does to a step is told with it, under a new epoch, and leaves no lease', async (t) => {
  const engine = at.newEngine(({ stepName, call }) =>
    stepName === 'charge' || call.op === 'COMPENSATE' ? refused() : undefined,
  );
  const steps = [stepOf('reserve'), stepOf('charge')];
  const id = await at.start({ name: 'told', deadlineMs: null, steps });
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  await at.until(id, ({ needs_person }) => needs_person);
  const before = await readRow(id);
  const resolve = { kind: 'resolve', stepName: 'reserve', by } as const;
  const early = await actionsOf().act(id, resolve);
  assert.ok(early.outcome === 'refused' && early.retryAfterMs !== undefined && early.retryAfterMs > 0);
  assert.deepEqual(await readRow(id), before);
  assert.deepEqual([events, settled], [[], []]);

  await at.db.query(sql`
    UPDATE saga.saga_step_logs SET started_at = started_at - interval '1 hour' WHERE saga_id = ${id}`);
  assert.deepEqual(await actionsOf().act(id, resolve), { outcome: 'done', status: 'FAILED' });
  const after = await readRow(id);
  assert.ok(after.lease_epoch > before.lease_epoch);
  assert.deepEqual([after.lease_owner, after.lease_until, after.wake_at], [null, null, null]);
  assert.deepEqual(
    events.map(({ sagaId, type }) => [sagaId, type]),
    [[id, 'SAGA_FAILED']],
  );
  assert.deepEqual(settled, ['COMPENSATING -> FAILED']);
});

test('a cancel of a saga that waits for a person ends its row of setbacks, and no other', async () => {
  for (const needsPerson of [true, false]) {
    const id = await newSaga();
    await at.db.query(sql`
      UPDATE saga.saga_states
      SET status = 'RUNNING', setbacks = 4, runs_alone = true, needs_person = ${needsPerson},
          stuck_step = ${needsPerson ? 0 : null}, stuck_op = ${needsPerson ? 'EXECUTE' : null}
      WHERE id = ${id}`);
    assert.equal((await actionsOf().request(id, { kind: 'cancel', by })).outcome, 'stored');
    const { setbacks, runs_alone } = await readRow(id);
    assert.deepEqual([setbacks, runs_alone], needsPerson ? [0, false] : [4, true]);
  }
});
