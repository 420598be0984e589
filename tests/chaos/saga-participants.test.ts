import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ParticipantAct, ParticipantRule } from '../support/participant/script.ts';
import {
  inOrder,
  openSagaScene,
  placeOrder,
  shopStep,
  workflowOf,
  type SagaScene,
} from './support/saga-scene.ts';

const hang: ParticipantAct = { act: 'hang', effect: true };
const undoneOf = (...steps: readonly string[]): readonly string[] => steps.map((step) => `undo ${step}`);

const charge = (
  tag: string,
  does: ParticipantAct,
  arrival?: ParticipantRule['arrival'],
): ParticipantRule => ({
  tag,
  step: 'charge',
  op: 'action',
  does,
  ...(arrival === undefined ? {} : { arrival }),
});

const undoCharge = (tag: string, does: ParticipantAct, arrival?: number): readonly ParticipantRule[] => [
  { tag, step: 'ship', op: 'action', does: { act: 'refuse' } },
  { tag, step: 'charge', op: 'compensate', does, ...(arrival === undefined ? {} : { arrival }) },
];

/** The first call of a step is answered so; the second one as it should be. */
const repeated: Readonly<Record<string, ParticipantAct>> = {
  'does it and does not answer': hang,
  'does not even do it': { act: 'hang', effect: false },
  'loses the answer after it was done': { act: 'reset', effect: true },
  'loses the call': { act: 'reset', effect: false },
  'does it and answers 500': { act: 'status', status: 500, effect: true },
  'answers 503, to come again in a second': { act: 'status', status: 503, effect: false, retryAfterS: 1 },
  'answers 429': { act: 'status', status: 429, effect: false },
  'answers 200 with a page': { act: 'garbage', as: 'text', effect: true },
  'answers 200 with more than is read': { act: 'garbage', as: 'huge', effect: true },
  'answers what is no HTTP': { act: 'garbage', as: 'bytes', effect: true },
};

/** No call of it may be repeated by the test's own slowness. */
const quick = workflowOf(
  'quick-order',
  shopStep('reserve'),
  shopStep('charge', { timeoutMs: 1500 }),
  shopStep('ship'),
);

const rules: readonly ParticipantRule[] = [
  ...Object.entries(repeated).map(([tag, does]) => charge(tag, does, 1)),
  charge('works', { act: 'work', ms: 500 }),
  charge('never answers', hang),
  charge('begins late', { act: 'late', ms: 6000 }),
  charge('takes it back', { act: 'reset', effect: true }, 1),
  charge('takes it back', { act: 'status', status: 409, effect: false }, { from: 2 }),
  charge('refuses', { act: 'refuse', status: 422 }),
  charge('does not understand', { act: 'status', status: 400, effect: false }),
  charge('bears no second call', { act: 'reset', effect: true }, 1),
  charge('has no undo', { act: 'reset', effect: true }),
  charge('needs no undo', { act: 'reset', effect: true }),
  ...undoCharge('undo hangs', hang, 1),
  ...undoCharge('undo answers 500', { act: 'status', status: 500, effect: true }, 1),
  ...undoCharge('undo refuses', { act: 'refuse' }, 1),
];

describe('A participant', { concurrency: true }, () => {
  let at: SagaScene;
  before(async () => {
    at = await openSagaScene({ script: { rules } });
    await at.start();
  });
  after(async () => {
    try {
      await at.atRest();
      const effects = await at.participant.guardedEffects();
      // Who says no and then does it all the same is beyond help.
      await at.participant.deliverAgain(['does not understand']);
      assert.deepEqual(
        await at.participant.guardedEffects(),
        effects,
        'what arrives again, late, does nothing',
      );
      await at.check();
    } finally {
      await at.close();
    }
  });

  const chargedBy = (more: Parameters<typeof shopStep>[1], name: string) =>
    workflowOf(name, shopStep('reserve'), shopStep('charge', more), shopStep('ship'));

  for (const tag of Object.keys(repeated))
    it(`that ${tag} is called again, and it has happened once`, async () => {
      const id = await at.beginOne(quick, tag);
      await at.ends(id, 'COMPLETED');
      assert.deepEqual(await at.calls(id), ['reserve', 'charge', 'charge', 'ship']);
    });

  it('that works for a while is polled with the same attempt', async () => {
    const id = await at.beginOne(placeOrder, 'works');
    await at.ends(id, 'COMPLETED');
    assert.deepEqual(
      await at.story(id),
      inOrder.map((step) => `${step} 1 SUCCESS`),
    );
    assert.ok((await at.calls(id)).filter((call) => call === 'charge').length > 1);
  });

  it('that never answers is called within the budget, then everything is undone, its own step too', async () => {
    const id = await at.beginOne(quick, 'never answers');
    await at.ends(id, 'FAILED');
    const calls = ['reserve', 'charge', 'charge', 'charge', ...undoneOf('charge', 'reserve')];
    assert.deepEqual(await at.calls(id), calls);
  });

  it('that begins after its undo finds that it must not', async () => {
    const id = await at.beginOne(quick, 'begins late');
    await at.ends(id, 'FAILED');
    assert.deepEqual((await at.calls(id)).slice(-2), undoneOf('charge', 'reserve'));
    const effects = await at.participant.guardedEffects();
    assert.ok(!effects.some(({ sagaId, step }) => sagaId === id && step === 'charge'));
  });

  it('that refuses a repeated call has nobody forget the first one', async () => {
    const id = await at.beginOne(placeOrder, 'takes it back');
    await at.ends(id, 'FAILED');
    const calls = ['reserve', 'charge', 'charge', ...undoneOf('charge', 'reserve')];
    assert.deepEqual(await at.calls(id), calls);
  });

  for (const tag of ['refuses', 'does not understand'])
    it(`that ${tag} is not called again, and what came before it is undone`, async () => {
      const id = await at.beginOne(placeOrder, tag);
      await at.ends(id, 'FAILED');
      assert.deepEqual(await at.calls(id), ['reserve', 'charge', 'undo reserve']);
    });

  it('that is not there has certainly done nothing', async () => {
    const id = await at.beginOne(chargedBy({ service: 'gone' }, 'gone-order'), 'gone');
    await at.ends(id, 'FAILED');
    assert.deepEqual(await at.calls(id), ['reserve', 'undo reserve']);
    assert.equal((await at.story(id)).filter((line) => line.startsWith('charge')).length, 3);
  });

  it('that bears no second call gets none: it is undone at once', async () => {
    const id = await at.beginOne(
      chargedBy({ service: 'careless' }, 'careless-order'),
      'bears no second call',
    );
    await at.ends(id, 'FAILED');
    assert.deepEqual(await at.calls(id), ['reserve', 'charge', ...undoneOf('charge', 'reserve')]);
  });

  it('that may have done what cannot be undone is left to a person', async () => {
    const id = await at.beginOne(chargedBy({ undo: { kind: 'absent' } }, 'blind-order'), 'has no undo');
    const saga = await at.becomes(id, 'asks a person', ({ needsAttention }) => needsAttention);
    assert.equal(saga.status, 'RUNNING');
    assert.deepEqual(await at.calls(id), ['reserve', 'charge', 'charge', 'charge']);
  });

  it('that needs no undo is not asked for one', async () => {
    const id = await at.beginOne(chargedBy({ undo: { kind: 'none' } }, 'free-order'), 'needs no undo');
    await at.ends(id, 'FAILED');
    assert.deepEqual((await at.story(id)).slice(-2), ['undo charge 1 SKIPPED', 'undo reserve 1 SUCCESS']);
  });

  for (const tag of ['undo hangs', 'undo answers 500'])
    it(`whose ${tag} is asked again, and undoes once`, async () => {
      const id = await at.beginOne(quick, tag);
      await at.ends(id, 'FAILED');
      assert.deepEqual(await at.calls(id), [...inOrder, ...undoneOf('charge', 'charge', 'reserve')]);
    });

  it('whose undo refuses leaves the saga to a person, who may have it asked again', async () => {
    const id = await at.beginOne(placeOrder, 'undo refuses');
    const saga = await at.becomes(id, 'asks a person', ({ needsAttention }) => needsAttention);
    assert.deepEqual([saga.status, saga.compensation], ['COMPENSATING', 'stuck']);
    assert.deepEqual(await at.calls(id), [...inOrder, 'undo charge']);
    for (const kind of ['skip', 'resolve'] as const)
      assert.equal((await at.act(id, kind, 'charge')).outcome, 'refused', 'a late call may still begin');
    assert.equal((await at.act(id, 'retry', 'reserve')).outcome, 'refused', 'it is stuck elsewhere');
    assert.equal((await at.act(id, 'retry', 'charge')).outcome, 'done');
    await at.ends(id, 'FAILED');
    assert.deepEqual(await at.calls(id), [...inOrder, ...undoneOf('charge', 'charge', 'reserve')]);
  });
});
