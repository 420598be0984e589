import assert from 'node:assert/strict';
import { test } from 'node:test';
import { extendStreak, noStreak, type Streak } from '../../kernel/targets/circuit.ts';
import { contactOf, isOutage } from './circuit.ts';
import { advance, type EngineEvent } from './advance.ts';
import { step, unsent, workflowOf } from '../../../tests/support/saga-model/driven-saga.ts';
import type { Answer } from './judge-answer.ts';
import { isTerminal, type SagaState } from './saga-state.ts';
import { newSaga } from '../../../tests/support/saga-model/new-saga.ts';
import type { Workflow } from './workflow/workflow.ts';

/**
 * Many sagas, a service that is down for some time, and its circuit, on a clock of their own: what is due next is done
 * next. The other service refuses, so that everything that the first one has done is to be undone.
 */
class Outage {
  now = 0;
  readonly sagas: SagaState[];
  readonly #workflow: Workflow;
  readonly #upAgainAt: number;
  readonly #hasCircuit: boolean;
  #streak: Streak<string> = noStreak;
  #isOpen = false;
  #probeAt = 0;
  #probes = 0;
  calls = 0;

  constructor(
    workflow: Workflow,
    {
      count,
      downForMs,
      hasCircuit = true,
    }: Readonly<{ count: number; downForMs: number; hasCircuit?: boolean }>,
  ) {
    this.#workflow = workflow;
    this.#upAgainAt = downForMs;
    this.#hasCircuit = hasCircuit;
    this.sagas = Array.from({ length: count }, () => newSaga(0, null));
    // All have come to the call that is refused when the outage begins.
    this.sagas.forEach((_, index) => {
      this.#on(index, { kind: 'claimed' }, false);
      this.#answer(index, { class: 'done', output: { id: index } }, false);
    });
  }

  run(): void {
    const refusal: Answer = { class: 'refused', detail: 'no', isTimeout: false, isUnsent: false };
    this.sagas.forEach((_, index) => this.#answer(index, refusal, false));
    for (let turn = 0; this.sagas.some(isUnderWay); turn += 1) {
      assert.ok(turn < 100_000, 'it never ends');
      const { index, at, isProbe } = this.#nextDue();
      this.now = Math.max(this.now, at);
      if (isProbe) this.#probeAt = Infinity;
      this.#on(index, { kind: 'claimed' }, isProbe);
      if (this.sagas[index]?.log.at(-1)?.status === null) this.#call(index, isProbe);
    }
  }

  #nextDue(): Readonly<{ index: number; at: number; isProbe: boolean }> {
    const due = this.sagas
      .map(({ wakeAt }, index) => ({ index, at: wakeAt ?? Infinity, isProbe: false }))
      .reduce((first, each) => (each.at < first.at ? each : first));
    const waiting = this.sagas.findIndex((saga) => saga.waiting !== null);
    if (!this.#isOpen || waiting < 0 || this.#probeAt > due.at) return due;
    return { index: waiting, at: this.#probeAt, isProbe: true };
  }

  #call(index: number, isProbe: boolean): void {
    this.calls += 1;
    const isUp = this.now >= this.#upAgainAt;
    const answer: Answer = isUp ? { class: 'done', output: null } : unsent;
    this.#note(index, answer, isProbe);
    this.#answer(index, answer, isProbe);
  }

  #note(index: number, answer: Answer, isProbe: boolean): void {
    if (contactOf(answer) === 'up') {
      this.#isOpen = false;
      this.#streak = noStreak;
      for (const [each, saga] of this.sagas.entries())
        if (saga.waiting !== null) this.sagas[each] = { ...saga, waiting: null, wakeAt: this.now };
      return;
    }
    if (isProbe) {
      this.#probes += 1;
      this.#probeAt = this.now + Math.min(5000 * 2 ** this.#probes, 60_000);
    }
    this.#streak = extendStreak(this.#streak, String(index), this.now);
    if (this.#isOpen || !this.#hasCircuit || !isOutage(this.#streak, this.now)) return;
    this.#isOpen = true;
    this.#probes = 0;
    this.#probeAt = this.now + 5000;
  }

  #answer(index: number, answer: Answer, isProbe: boolean): void {
    const open = this.sagas[index]?.log.find(({ status }) => status === null) ?? assert.fail();
    this.#on(index, { kind: 'answered', ...open, answer, isProbe }, false);
    if (this.sagas[index]?.log.at(-1)?.op === 'COMPENSATE' && this.sagas[index]?.log.at(-1)?.status === null)
      this.#call(index, false);
  }

  #on(index: number, event: EngineEvent, isProbe: boolean): void {
    const decision = advance(this.#workflow, this.sagas[index] ?? assert.fail(), event, {
      now: this.now,
      random: () => 0.5,
      serviceOf: () => ({ isIdempotent: true }),
      isDown: (service) => this.#isOpen && service === 'shop' && !isProbe,
    });
    assert.ok(decision.outcome === 'settle', `${event.kind} is stale`);
    const { next, state } = decision;
    this.sagas[index] = next.do === 'call' ? next.opening.state : state;
  }
}

const isUnderWay = ({ status, stuck }: SagaState): boolean => !isTerminal(status) && stuck === null;
const order = workflowOf(step('reserve', { service: 'shop' }), step('pay', { service: 'till' }));
const minutes = 60_000;

test('an ordinary outage of 253 s: 20 of 20 sagas end compensated by themselves', () => {
  const outage = new Outage(order, { count: 20, downForMs: 253_000 });
  outage.run();
  const ends = outage.sagas.map(({ status, compensation }) => `${status} ${compensation}`);
  assert.deepEqual(ends, Array(20).fill('FAILED done'));
  assert.ok(outage.now < 253_000 + minutes, `the last one ended ${outage.now - 253_000} ms after the outage`);
  const inVain = outage.calls - 20;
  assert.ok(inVain < 20, `${inVain} calls were made while the service was down`);
});

test('while a service is known to be down no budget is spent, and one that is down for a day less a little is no trouble', () => {
  const outage = new Outage(order, { count: 20, downForMs: 23 * 60 * minutes });
  outage.run();
  assert.ok(outage.sagas.every(({ status }) => status === 'FAILED'));
  for (const { log } of outage.sagas)
    assert.ok(log.reduce((sum, { spentMs }) => sum + spentMs, 0) < minutes, 'time of the outage was spent');
});

test('a service that is down for all of undo_for leaves the sagas in need of attention, and says why', () => {
  const [reserve, pay] = order.steps;
  assert.ok(reserve && pay);
  const short = workflowOf({ ...reserve, undoForMs: 30 * minutes }, pay);
  const outage = new Outage(short, { count: 20, downForMs: Infinity });
  outage.run();
  for (const { stuck } of outage.sagas)
    assert.deepEqual(stuck, {
      step: 0,
      op: 'COMPENSATE',
      reason: 'the service shop was unavailable for 30m',
    });
  assert.ok(outage.now < 32 * minutes, String(outage.now));
});

test('without a circuit an undo is tried through an outage all the same, and for undo_for at most', () => {
  const ordinary = new Outage(order, { count: 1, downForMs: 253_000, hasCircuit: false });
  ordinary.run();
  assert.equal(ordinary.sagas[0]?.status, 'FAILED');
  const endless = new Outage(order, { count: 1, downForMs: Infinity, hasCircuit: false });
  endless.run();
  assert.match(endless.sagas[0]?.stuck?.reason ?? '', /^\d+ attempts in 1d failed/);
  assert.ok(endless.now > 23.9 * 60 * minutes && endless.now <= 24 * 60 * minutes, String(endless.now));
});

test('a probe that fails costs nothing, and an attempt that shows the outage costs its own time only', () => {
  const context = { now: 0, random: () => 0.5, serviceOf: () => ({ isIdempotent: true }) };
  const one = workflowOf(step('reserve', { retry: { ...step('reserve').retry, maxAttempts: 1 } }));
  const begun = advance(one, newSaga(0, null), { kind: 'claimed' }, context);
  assert.ok(begun.outcome === 'settle' && begun.next.do === 'call');
  const event = { kind: 'answered', step: 0, op: 'EXECUTE', attempt: 1, answer: unsent } as const;
  const isDown = (): boolean => true;
  const probe = advance(
    one,
    begun.next.opening.state,
    { ...event, isProbe: true },
    { ...context, now: 40, isDown },
  );
  assert.ok(probe.outcome === 'settle');
  assert.deepEqual(
    [probe.state.log[0]?.spentMs, probe.state.waiting],
    [0, { service: 'reserve', since: 40 }],
  );
  const two = workflowOf(step('reserve'));
  const shown = advance(two, begun.next.opening.state, event, { ...context, now: 40, isDown });
  assert.ok(shown.outcome === 'settle');
  assert.equal(shown.state.log[0]?.spentMs, 40);
  const other = advance(two, begun.next.opening.state, event, { ...context, now: 40 });
  assert.ok(other.outcome === 'settle');
  assert.equal(other.state.log[0]?.spentMs, 1040, 'otherwise the backoff counts too');
});
