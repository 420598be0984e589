import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ParticipantRule } from '../support/participant/script.ts';
import {
  inOrder,
  openSagaScene,
  placeOrder,
  shopStep,
  workflowOf,
  type SagaScene,
} from './support/saga-scene.ts';

/** Each saga has a tag, and each tag its own trouble. */
const rules: readonly ParticipantRule[] = [
  ...inOrder.map(
    (step) =>
      ({ tag: `during-${step}`, step, op: 'action', does: { act: 'hold', effect: 'before' } }) as const,
  ),
  { tag: 'failing', step: 'charge', op: 'action', does: { act: 'hold', effect: 'after' } },
  { tag: 'waiting', step: 'charge', op: 'action', does: { act: 'status', status: 500, effect: true } },
  { tag: 'polled', step: 'charge', op: 'action', does: { act: 'work', ms: 3000 } },
  { tag: 'undoing', step: 'ship', op: 'action', does: { act: 'refuse' } },
  { tag: 'undoing', step: 'charge', op: 'compensate', does: { act: 'hold', effect: 'before' } },
  { tag: 'pivot', step: 'ship', op: 'action', does: { act: 'hold', effect: 'before' } },
  { tag: 'stuck', step: 'charge', op: 'action', does: { act: 'reset', effect: true } },
];

/** So long between two attempts that only a cancel can wake it. */
const patient = { maxAttempts: 3, backoff: 'fixed', initialIntervalMs: 3_600_000 } as const;

const undosOf = (done: readonly string[]): readonly string[] =>
  done.toReversed().map((step) => `undo ${step}`);

describe('A saga that is cancelled', () => {
  let at: SagaScene;
  let unbegun: string;
  before(async () => {
    at = await openSagaScene({ script: { rules } });
    unbegun = await at.beginOne(placeOrder, 'unbegun');
    assert.equal((await at.abort(unbegun)).outcome, 'stored');
    await at.start();
  });
  after(() => at.close());

  it('before anybody has begun with it calls nothing', async () => {
    await at.ends(unbegun, 'CANCELLED');
    assert.deepEqual([await at.calls(unbegun), await at.story(unbegun)], [[], []]);
    await at.check();
  });

  for (const [index, step] of inOrder.entries())
    it(`while ${step} is called lets it end, and undoes everything that was done`, async () => {
      const tag = `during-${step}`;
      const id = await at.beginOne(placeOrder, tag);
      await at.arrives(id, step);
      const { epoch } = await at.find(id);
      assert.deepEqual(await at.abort(id), { outcome: 'stored', status: 'RUNNING' });
      assert.equal((await at.abort(id, 'compensate')).outcome, 'unchanged', 'the first wish stands');
      assert.equal((await at.find(id)).epoch, epoch, 'it takes the saga from nobody');
      await at.participant.release(tag);
      const ended = await at.ends(id, 'CANCELLED');
      const done = inOrder.slice(0, index + 1);
      assert.deepEqual(await at.calls(id), [...done, ...undosOf(done)]);
      assert.match(ended.error ?? '', /cancelled by ops: a test/);
      assert.equal((await at.abort(id)).outcome, 'refused', 'an end is an end');
      await at.check();
    });

  it('while it waits for the next attempt is woken, and undoes what nobody knows the end of', async () => {
    const steps = [shopStep('reserve'), shopStep('charge', { retry: patient }), shopStep('ship')];
    const id = await at.beginOne(workflowOf('patient-order', ...steps), 'waiting');
    await at.becomes(id, 'waits', ({ owner, currentStep }) => owner === null && currentStep === 1);
    await at.abort(id);
    await at.ends(id, 'CANCELLED');
    assert.deepEqual(await at.calls(id), ['reserve', 'charge', 'undo charge', 'undo reserve']);
    await at.check();
  });

  it('while an action is polled leaves it, and undoes it however long it works', async () => {
    const id = await at.beginOne(placeOrder, 'polled');
    await at.arrives(id, 'charge');
    await at.becomes(id, 'waits', ({ owner, currentStep }) => owner === null && currentStep === 1);
    await at.abort(id);
    await at.ends(id, 'CANCELLED');
    const calls = await at.calls(id);
    assert.ok(calls.filter((call) => call === 'undo charge').length > 1, 'the undo waits for the action');
    const effects = (await at.participant.guardedEffects()).filter(({ sagaId }) => sagaId === id);
    assert.ok(
      effects.every(({ step }) => step === 'reserve'),
      'the action that worked finds that it is void',
    );
    await at.check();
  });

  it('while it is undone changes nothing', async () => {
    const id = await at.beginOne(placeOrder, 'undoing');
    await at.arrives(id, 'undo charge');
    assert.deepEqual(await at.abort(id), { outcome: 'unchanged', status: 'COMPENSATING' });
    await at.participant.release('undoing');
    await at.ends(id, 'FAILED');
    await at.check();
  });

  it('behind its pivot goes on to its end', async () => {
    const pivot = shopStep('ship', { isPivot: true, undo: { kind: 'absent' } });
    const id = await at.beginOne(workflowOf('one-way-order', shopStep('reserve'), pivot), 'pivot');
    await at.arrives(id, 'ship');
    assert.equal((await at.abort(id)).outcome, 'refused');
    await at.participant.release('pivot');
    await at.ends(id, 'COMPLETED');
    await at.check();
  });

  it('while it waits for a person is woken, and asks again where there is no undo', async () => {
    const charge = shopStep('charge', { undo: { kind: 'absent' } });
    const id = await at.beginOne(workflowOf('blind-order', shopStep('reserve'), charge), 'stuck');
    await at.becomes(id, 'asks a person', ({ needsAttention }) => needsAttention);
    assert.deepEqual(await at.abort(id), { outcome: 'stored', status: 'RUNNING' });
    const { status } = await at.becomes(
      id,
      'asks again',
      (saga) => saga.needsAttention && saga.status === 'COMPENSATING',
    );
    assert.equal(status, 'COMPENSATING');
    await at.check();
  });

  it('is not done by what arrives once more, long after its end', async () => {
    const before = await at.participant.guardedEffects();
    await at.participant.deliverAgain();
    assert.deepEqual(await at.participant.guardedEffects(), before);
    await at.check();
  });
});

describe('A saga that is cancelled between two moments of its process', { concurrency: 2 }, () => {
  it('is decided again where its answer was not yet stored: nothing more is called', async (t) => {
    const at = await openSagaScene();
    t.after(() => at.close());
    const replica = await at.start({ faults: [{ at: 'saga_settling', act: 'stop', nth: 2 }] });
    const id = await at.beginOne(placeOrder);
    await replica.stopped();
    assert.equal((await at.abort(id)).outcome, 'stored');
    replica.resume();
    await at.ends(id, 'CANCELLED');
    const undone = ['undo reserve'];
    const calls = await at.calls(id);
    assert.deepEqual(
      calls.filter((call) => call !== 'reserve'),
      undone,
    );
    await at.check();
  });

  it('does not end well where its last answer was not yet stored', async (t) => {
    const at = await openSagaScene();
    t.after(() => at.close());
    const replica = await at.start({ faults: [{ at: 'saga_settling', act: 'stop', nth: 4 }] });
    const id = await at.beginOne(placeOrder);
    await replica.stopped();
    assert.equal((await at.abort(id, 'compensate')).outcome, 'stored');
    replica.resume();
    await at.ends(id, 'FAILED');
    await at.check();
  });

  it('is undone where its next call was opened and not yet made', async (t) => {
    const at = await openSagaScene();
    t.after(() => at.close());
    const replica = await at.start({ faults: [{ at: 'saga_settled', act: 'stop', nth: 2 }] });
    const id = await at.beginOne(placeOrder);
    await replica.stopped();
    assert.equal((await at.abort(id)).outcome, 'stored');
    replica.resume();
    await at.ends(id, 'CANCELLED');
    assert.ok(!(await at.calls(id)).includes('ship'));
    await at.check();
  });
});
