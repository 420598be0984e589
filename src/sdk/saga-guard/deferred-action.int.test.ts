import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { PoolClient } from 'pg';
import { eventually } from '../../../tests/support/eventually.ts';
import {
  newStep,
  openGuardScene,
  type GuardScene,
  type StepCalls,
} from '../../../tests/support/guarded-steps.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { refuse } from './guard-reply.ts';
import type { Guarded } from './guarded-action.ts';
import type { SagaGuard } from './saga-guard.ts';

let scene: GuardScene;
before(async () => void (scene = await openGuardScene()));
after(() => scene.close());

const approving = (guard: SagaGuard<PoolClient> = scene.guard): Guarded =>
  guard.deferredAction(async (tx, { sagaId }) => scene.effect(tx, sagaId, 'begun'));
const undoing = (): Guarded => scene.guard.undo((tx, { sagaId }) => scene.effect(tx, sagaId, 'undo'));
const keyOf = ({ sagaId }: StepCalls) => ({ sagaId, step: 'reserve' });

/** From a process of its own, as far as the guard can tell. */
const complete = (step: StepCalls, guard = scene.openGuard()): ReturnType<SagaGuard['complete']> =>
  guard.complete(keyOf(step), async (tx) => {
    await scene.effect(tx, step.sagaId, 'action');
    return { approved_by: 'ann' };
  });

test('a deferred action is working until another process completes it, and then its answer is told', async () => {
  const step = newStep();
  const first = await approving()(step.action());
  assert.deepEqual([first.status, first.result, first.retryAfterSecs], [202, 'working', 1]);
  assert.equal((await approving(scene.openGuard())(step.action())).status, 202);
  assert.equal((await approving()(step.action({ another: 'body' }))).status, 202);
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['begun'], 'it has begun once');

  assert.equal(await complete(step), 'done');
  assert.equal((await approving()(step.action())).body, '{"approved_by":"ann"}');
  assert.equal((await approving()(step.action({ another: 'body' }))).result, 'mismatch');
  assert.equal((await undoing()(step.undo())).status, 204);
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['begun', 'action', 'undo']);
});

test('of many who complete it at once the effect of one commits, and all are told that it is done', async () => {
  const step = newStep();
  await approving()(step.action());
  const guard = scene.openGuard();
  const ends = await Promise.all(Array.from({ length: 6 }, () => complete(step, guard)));
  assert.deepEqual(new Set(ends), new Set(['done']));
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['begun', 'action']);
});

test('an undo does not wait for anybody, and whoever completes it later is told that it is undone', async () => {
  const step = newStep();
  await approving()(step.action());
  assert.equal((await undoing()(step.undo())).status, 204);
  assert.equal(await scene.phaseOf(step.sagaId), 'void');
  assert.equal(await complete(step), 'undone');
  assert.equal((await approving()(step.action())).result, 'already-compensated');
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['begun']);
});

test('an undo and a completion that meet agree on what has happened', async () => {
  for (let round = 0; round < 20; round += 1) {
    const step = newStep();
    await approving()(step.action());
    // On a slow machine the undo may be told to ask again.
    const undone = eventually(async () => assert.equal((await undoing()(step.undo())).status, 204));
    const [end] = await Promise.all([complete(step, scene.guard), undone]);
    const effects = end === 'done' ? ['begun', 'action', 'undo'] : ['begun'];
    assert.deepEqual(
      [end, await scene.effectsOf(step.sagaId)],
      [end === 'done' ? 'done' : 'undone', effects],
    );
  }
});

test('an effect that fails leaves the action waiting, and one that refuses ends it', async () => {
  const step = newStep();
  await approving()(step.action());
  const failing = scene.guard.complete(keyOf(step), async (tx) => {
    await scene.effect(tx, step.sagaId, 'action');
    throw new Error('the printer is on fire');
  });
  await assert.rejects(failing, /on fire/);
  assert.equal((await approving()(step.action())).status, 202);
  const refusing = scene.guard.complete(keyOf(step), () => refuse({ reason: 'too expensive' }));
  assert.equal(await refusing, 'refused');
  assert.equal(await complete(step), 'refused');
  const told = await approving()(step.action());
  assert.deepEqual([told.status, told.body], [409, '{"reason":"too expensive"}']);
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['begun']);
});

test('a beginning that refuses or fails leaves nothing to be completed', async () => {
  const refused = newStep();
  const refusing = scene.guard.deferredAction(() => refuse({ reason: 'closed' }));
  assert.equal((await refusing(refused.action())).status, 409);
  assert.equal(await complete(refused), 'refused');
  const failed = newStep();
  const failing = scene.guard.deferredAction(() => Promise.reject(new Error('no paper')));
  assert.equal((await failing(failed.action())).status, 500);
  assert.equal(await complete(failed), 'unknown');
  assert.equal(await scene.phaseOf(failed.sagaId), null);
});

test('what a process holds under a lease of its own cannot be completed past it', async () => {
  const step = newStep();
  const gate = Promise.withResolvers<void>();
  const guard = scene.openGuard();
  await guard.longAction({ work: () => gate.promise, effect: () => null })(step.action());
  assert.equal(await complete(step), 'unknown');
  assert.deepEqual(await scene.effectsOf(step.sagaId), []);
  gate.resolve();
});

test('one that nobody completes waits as long as it takes', async () => {
  const step = newStep();
  await approving()(step.action());
  await scene.database.db.query(sql`
    UPDATE public.redrive_saga_steps SET settled_at = now() - interval '300 days' WHERE saga_id = ${step.sagaId}`);
  await scene.guard.cleanUp();
  assert.equal((await approving()(step.action())).status, 202);
  assert.equal(await complete(step), 'done');
});
