import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { PoolClient } from 'pg';
import {
  newStep,
  openGuardScene,
  type GuardScene,
  type StepCalls,
} from '../../../tests/support/guarded-steps.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { onceAborted } from '../../kernel/clock.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { refuse } from './guard-reply.ts';
import type { Guarded } from './guarded-action.ts';
import type { LongAction } from './long-action.ts';
import type { SagaGuard } from './saga-guard.ts';

const program = fileURLToPath(new URL('../../../tests/support/long-action-process.ts', import.meta.url));
let scene: GuardScene;
before(async () => void (scene = await openGuardScene()));
after(() => scene.close());

/** Its work waits until the test lets it go on. */
function heldAction(
  guard: SagaGuard<PoolClient>,
  more: Partial<LongAction> = {},
): Readonly<{ act: Guarded; begun: Promise<void>; goOn: () => void; ended: Promise<void> }> {
  const begun = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const act = guard.longAction({
    work: async () => {
      begun.resolve();
      await gate.promise;
      return 'prepared';
    },
    effect: async (tx, made, { sagaId }) => {
      ended.resolve();
      await scene.effect(tx, sagaId, 'action');
      return { made };
    },
    ...more,
  });
  return { act, begun: begun.promise, goOn: gate.resolve, ended: ended.promise };
}

const undoing = (): Guarded =>
  scene.guard.undo(async (tx, { sagaId }) => {
    await scene.effect(tx, sagaId, 'undo');
    return 'undone';
  });

const statusOf = async (guarded: Guarded, request: ReturnType<StepCalls['undo']>): Promise<number> =>
  (await guarded(request)).status;

/** As a process leaves it that was killed, or is paused, for longer than its lease. */
async function endLease({ sagaId }: StepCalls): Promise<void> {
  const rows = await scene.database.db.query(sql`
    UPDATE public.redrive_saga_steps SET lease_until = now() - interval '1 s'
    WHERE saga_id = ${sagaId} AND phase = 'working' RETURNING run`);
  assert.equal(rows.length, 1);
}

test('a long action is working until its effect is committed, and then its answer is told', async () => {
  const step = newStep();
  const { act, begun, goOn } = heldAction(scene.guard);
  const first = await act(step.action());
  assert.deepEqual([first.status, first.result, first.retryAfterSecs], [202, 'working', 1]);
  await begun;
  assert.equal(await statusOf(act, step.action()), 202);
  assert.deepEqual(await scene.effectsOf(step.sagaId), []);
  goOn();
  await eventually(async () => assert.equal(await scene.phaseOf(step.sagaId), 'done'));
  assert.equal((await act(step.action())).body, '{"made":"prepared"}');
  assert.equal(await statusOf(undoing(), step.undo()), 200);
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action', 'undo']);
});

test('an undo that meets a working action keeps it from its effect', async () => {
  const step = newStep();
  const { act, begun, goOn } = heldAction(scene.guard);
  await act(step.action());
  await begun;
  assert.equal(await statusOf(undoing(), step.undo()), 202);
  assert.equal(await statusOf(undoing(), step.undo()), 202);
  goOn();
  await eventually(async () => assert.equal(await scene.phaseOf(step.sagaId), 'void'));
  assert.equal(await statusOf(undoing(), step.undo()), 204);
  assert.equal((await act(step.action())).result, 'already-compensated');
  assert.deepEqual(await scene.effectsOf(step.sagaId), []);
});

test('the work hears that it is no longer wanted', async () => {
  const step = newStep();
  const aborted = Promise.withResolvers<void>();
  const act = scene.guard.longAction({
    leaseMs: 60,
    work: async (_call, signal) => {
      await onceAborted(signal);
      aborted.resolve();
      signal.throwIfAborted();
    },
    effect: () => assert.fail('it was aborted'),
  });
  await act(step.action());
  // The lease is short, so on a slow machine the undo may find it over and be done at once.
  assert.ok([202, 204].includes(await statusOf(undoing(), step.undo())));
  await aborted.promise;
  await eventually(async () => assert.equal(await scene.phaseOf(step.sagaId), 'void'));
});

test('an action whose process was lost is begun anew by the next call', async () => {
  const step = newStep();
  const guard = scene.openGuard();
  const lost = heldAction(guard);
  await lost.act(step.action());
  await lost.begun;
  await endLease(step);
  const rescuer = heldAction(scene.openGuard());
  assert.equal(await statusOf(rescuer.act, step.action({ another: 'body' })), 202);
  assert.equal(await statusOf(rescuer.act, step.action()), 202);
  await rescuer.begun;
  rescuer.goOn();
  await eventually(async () => assert.equal(await scene.phaseOf(step.sagaId), 'done'));
  lost.goOn();
  // When its guard has stopped, the lost one has tried to complete.
  await guard.stop();
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action']);
});

test('an undo of an action whose process was lost is done at once, and the lost process cannot complete', async () => {
  const step = newStep();
  const guard = scene.openGuard();
  const { act, begun, goOn } = heldAction(guard);
  await act(step.action());
  await begun;
  await endLease(step);
  assert.equal(await statusOf(undoing(), step.undo()), 204);
  assert.equal(await scene.phaseOf(step.sagaId), 'void');
  goOn();
  await guard.stop();
  assert.equal(await scene.phaseOf(step.sagaId), 'void');
  assert.deepEqual(await scene.effectsOf(step.sagaId), []);
});

test('an undo that was asked for before the process was lost ends once the lease is over', async () => {
  const step = newStep();
  const { act, begun, goOn } = heldAction(scene.guard);
  await act(step.action());
  await begun;
  assert.equal(await statusOf(undoing(), step.undo()), 202);
  await endLease(step);
  assert.equal(await statusOf(act, step.action()), 202);
  assert.equal(await statusOf(undoing(), step.undo()), 204);
  goOn();
});

for (const next of ['action', 'undo'] as const)
  test(`when the process of a long action is killed, the next ${next} goes on once the lease is over`, async () => {
    const step = newStep();
    const args = [scene.database.url, JSON.stringify(step.action())];
    const child = spawn(process.execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      await once(child.stdout, 'data');
    } finally {
      child.kill('SIGKILL');
    }
    const { act, goOn } = heldAction(scene.guard);
    goOn();
    const [guarded, request] = next === 'action' ? [act, step.action()] : [undoing(), step.undo()];
    await eventually(async () =>
      assert.equal(await statusOf(guarded, request), next === 'action' ? 200 : 204),
    );
    assert.deepEqual(await scene.effectsOf(step.sagaId), next === 'action' ? ['action'] : []);
  });

test('a working row that is renewed is not taken over', async () => {
  const step = newStep();
  const { act, begun, goOn } = heldAction(scene.guard, { leaseMs: 300 });
  await act(step.action());
  await begun;
  const leaseOf = async (): Promise<string> => {
    const [row] = await scene.database.db.query<{ lease: string }>(sql`
      SELECT lease_until::text AS lease FROM public.redrive_saga_steps WHERE saga_id = ${step.sagaId}`);
    return row?.lease ?? '';
  };
  const first = await leaseOf();
  await eventually(async () => assert.ok((await leaseOf()) > first));
  goOn();
  await eventually(async () => assert.equal(await scene.phaseOf(step.sagaId), 'done'));
});

test('work that fails is given back, and the next call begins it anew', async () => {
  const step = newStep();
  let calls = 0;
  const act = scene.guard.longAction({
    work: async () => {
      if ((calls += 1) === 1) throw new Error('the robot fell over');
    },
    effect: (tx, _made, { sagaId }) => scene.effect(tx, sagaId, 'action'),
  });
  await eventually(async () => assert.equal(await statusOf(act, step.action()), 204));
  assert.equal(calls, 2);
  assert.ok(scene.errors.some((error) => error instanceof Error && error.message === 'the robot fell over'));
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action']);
});

for (const where of ['work', 'effect'] as const)
  test(`a refusal in ${where} is kept, without any effect`, async () => {
    const step = newStep();
    const act = scene.guard.longAction({
      work: async () => {
        if (where === 'work') throw refuse({ reason: 'no robot' });
      },
      effect: async (tx, _made, { sagaId }) => {
        await scene.effect(tx, sagaId, 'action');
        throw refuse({ reason: 'no robot' });
      },
    });
    await act(step.action());
    await eventually(async () => assert.equal(await scene.phaseOf(step.sagaId), 'refused'));
    const { status, body } = await act(step.action());
    assert.deepEqual([status, body], [409, '{"reason":"no robot"}']);
    assert.deepEqual(await scene.effectsOf(step.sagaId), []);
  });

test('a guard that stops gives its long actions back', async () => {
  const step = newStep();
  const guard = scene.openGuard();
  const act = guard.longAction({
    work: async (_call, signal) => {
      await onceAborted(signal);
      signal.throwIfAborted();
    },
    effect: () => assert.fail('it was stopped'),
  });
  await act(step.action());
  await guard.stop();
  const next = heldAction(scene.guard);
  assert.equal(await statusOf(next.act, step.action()), 202);
  await next.begun;
  next.goOn();
  await next.ended;
  await eventually(async () => assert.equal(await scene.phaseOf(step.sagaId), 'done'));
});

test('an action that is short by now takes over what was begun as a long one', async () => {
  const step = newStep();
  const { act, begun, goOn } = heldAction(scene.guard);
  await act(step.action());
  await begun;
  await endLease(step);
  const short = scene.guard.action(async (tx, { sagaId }) => {
    await scene.effect(tx, sagaId, 'action');
    return 'short';
  });
  assert.equal((await short(step.action())).body, '"short"');
  goOn();
  assert.equal((await act(step.action())).body, '"short"');
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action']);
});
