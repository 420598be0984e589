import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { newStep, openGuardScene, type GuardScene } from '../../../tests/support/guarded-steps.ts';
import { hostileValues } from '../../../tests/support/hostile-values.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { sagaGuard } from './saga-guard.ts';

let scene: GuardScene;
before(async () => void (scene = await openGuardScene()));
after(() => scene.close());

test('whatever a handler throws is a failed call that was rolled back, told on the standard error output', async (t) => {
  const lines: string[] = [];
  t.mock.method(process.stderr, 'write', (line: string) => Boolean(lines.push(line)));
  const guard = sagaGuard({ pool: scene.pool });
  for (const [name, make] of hostileValues) {
    const step = newStep();
    const action = guard.action(async (tx, { sagaId }) => {
      await scene.effect(tx, sagaId, 'action');
      throw make();
    });
    const reply = await action(step.action());
    assert.deepEqual([reply.status, reply.result], [500, 'failed'], name);
    assert.deepEqual(await scene.effectsOf(step.sagaId), [], name);
    const undo = guard.undo(() => {
      throw make();
    });
    assert.equal((await undo(step.undo())).status, 204, `${name}: there is nothing to undo`);
  }
  assert.equal(lines.length, hostileValues.length);
  await guard.stop();
});

test('whatever the work of a long action throws ends that run only', async (t) => {
  t.mock.method(process.stderr, 'write', () => true);
  const guard = sagaGuard({ pool: scene.pool });
  for (const [name, make] of hostileValues) {
    const step = newStep();
    let isFailing = true;
    const action = guard.longAction({
      work: async () => {
        if (isFailing) throw make();
      },
      effect: () => ({ done: true }),
    });
    assert.equal((await action(step.action())).status, 202, name);
    isFailing = false;
    await eventually(async () => assert.equal((await action(step.action())).status, 200, name));
  }
  await guard.stop();
});
