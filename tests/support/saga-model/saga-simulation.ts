import assert from 'node:assert/strict';
import { advanceByOperator, type StepAction } from '../../../src/saga/domain/advance-by-operator.ts';
import { advance, type EngineEvent } from '../../../src/saga/domain/advance.ts';
import type { Call, Context, Published, Settlement } from '../../../src/saga/domain/settlement.ts';
import type { Answer } from '../../../src/saga/domain/judge-answer.ts';
import { requestAbort } from '../../../src/saga/domain/request-abort.ts';
import { checkInvariants } from './saga-invariants.ts';
import { answerOf, lost, SimulatedNetwork, type Effects } from './simulated-network.ts';
import { isTerminal, withKnown, type Op, type SagaState } from '../../../src/saga/domain/saga-state.ts';
import { newSaga } from './new-saga.ts';
import type { Step, Workflow } from '../../../src/saga/domain/workflow/workflow.ts';

/** One saga, the database, a worker, guarded participants, a person, and everything that can go wrong between them. */
export type Scenario = Readonly<{
  workflow: Workflow;
  /** The services that must not be called twice. */
  fragile: ReadonlySet<string>;
  /** The steps whose participants have no guard. */
  bare: ReadonlySet<number>;
  /** What is never answered until all goes well: `0 EXECUTE`, `2 COMPENSATE`. */
  silent: ReadonlySet<string>;
  /** What happens, number by number; when they are used up, all goes well. */
  choices: readonly number[];
}>;

const by = { actor: 'ann', reason: 'looked' };
const replies = ['done', 'refused', 'working', 'unknown', 'too_late', 'not_found'] as const;
const MAX_CALM_TURNS = 500;

export class Simulation {
  readonly #scenario: Scenario;
  readonly #network: SimulatedNetwork;
  readonly #gone = new Set<string>();
  /** The services that are known to be down. */
  readonly #down = new Set<string>();
  #isProbe = false;
  /** What a person found when a step was closed by hand. */
  readonly #byHand: (Effects & Readonly<{ step: number; op: Op | undefined }>)[] = [];
  #turn = 0;
  db: SagaState;
  /** Who has the lease: what it knows, and its call in flight. */
  #worker: { known: SagaState; flight: Call; isProbe: boolean } | null = null;
  #isLeaseLost = false;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.#network = new SimulatedNetwork(scenario.workflow.steps.length, scenario.bare, (ways) =>
      this.#pick(ways),
    );
    this.db = newSaga(0, scenario.workflow.deadlineMs);
  }

  run(): void {
    while (this.#turn < this.#scenario.choices.length) this.#step();
    this.#calmDown();
    this.#checkEffects();
  }

  /** 0 once the choices are used up: the kindest of all. */
  #pick(ways: number): number {
    const choice = this.#scenario.choices[this.#turn] ?? 0;
    this.#turn += 1;
    return choice % ways;
  }

  #step(): void {
    const way = this.#pick(16);
    if (way < 7) this.#work();
    else if (way === 7) this.#network.now += [1000, 60_000, 400_000, 3_600_000][this.#pick(4)] ?? 0;
    else if (way === 8) this.#abort();
    else if (way === 9) this.#crash();
    else if (way === 10) this.#network.deliverLate();
    else if (way === 11)
      this.#network.participant(this.#pick(this.#scenario.workflow.steps.length)).complete();
    else if (way === 12) this.#strayAnswer();
    else if (way === 13) this.#toggleService();
    else this.#person();
  }

  #work(): void {
    if (this.#worker !== null) return this.#answer(this.#worker);
    if (isTerminal(this.db.status) || this.db.stuck !== null) return;
    const isLost = this.#isLeaseLost;
    if (!isLost) this.#network.now = Math.max(this.#network.now, this.db.wakeAt ?? this.#network.now);
    this.#isLeaseLost = false;
    this.#isProbe = this.#pick(4) === 3;
    if (isLost && this.#pick(4) === 3) return this.#settle(this.db, { kind: 'given_up', reason: 'lost' });
    this.#settle(this.db, { kind: isLost ? 'worker_lost' : 'claimed' });
  }

  #context(): Context {
    const { fragile } = this.#scenario;
    const serviceOf = (name: string) =>
      this.#gone.has(name) ? undefined : { isIdempotent: !fragile.has(name) };
    const isDown = (name: string): boolean => this.#down.has(name) && !this.#isProbe;
    return { now: this.#network.now, random: () => 0.5, serviceOf, isDown };
  }

  /** Decides, and decides again if the database knows more by the time of the settle. */
  #settle(known: SagaState, event: EngineEvent): void {
    this.#worker = null;
    const { workflow } = this.#scenario;
    let decision = advance(workflow, known, event, this.#context());
    if (this.#pick(12) === 11) this.#abort();
    while (this.#knowsMore(known)) {
      known = withKnown(known, { abort: this.db.abort, isDeadlineOver: this.#isDeadlineOver() });
      decision = advance(workflow, known, event, this.#context());
    }
    assert.ok(decision.outcome === 'settle', `${event.kind} is stale`);
    if (this.#pick(15) === 14) {
      this.#isLeaseLost = true;
      return;
    }
    this.#commit(decision);
  }

  #knowsMore(known: SagaState): boolean {
    return known.abort !== this.db.abort || (this.#isDeadlineOver() && !known.isDeadlineOver);
  }

  #isDeadlineOver(): boolean {
    return this.db.deadlineAt !== null && this.#network.now >= this.db.deadlineAt;
  }

  #commit({ state, changed, added, events, next }: Settlement): void {
    const before = this.db;
    this.#write(state, events);
    assert.equal(before.log.length + added.length, state.log.length);
    assert.ok(changed.every((row) => state.log.includes(row)));
    assert.deepEqual(next.do === 'needs_attention', state.stuck !== null);
    assert.deepEqual(next.do === 'end', isTerminal(state.status));
    if (next.do !== 'call' && next.do !== 'poll') return;
    // Without a free slot it stays as it is, and comes back to the same call.
    if (this.#pick(10) === 9) return;
    if (next.do === 'call') this.#write(next.opening.state, next.opening.events);
    const isProbe = this.#down.has(next.call.service);
    assert.ok(!isProbe || this.#isProbe, 'a service that is known to be down is called');
    this.#worker = { known: this.db, flight: next.call, isProbe };
    if (this.#pick(15) === 14) this.#crash();
  }

  #write(after: SagaState, events: readonly Published[]): void {
    const before = this.db;
    assert.ok(!isTerminal(before.status), 'a write after the end');
    this.db = after;
    const { workflow, fragile } = this.#scenario;
    const isIdempotent = (service: string): boolean => !fragile.has(service);
    checkInvariants({ workflow, before, after, events, isIdempotent });
  }

  /** The worker is gone or only paused: its call may be on its way, and may arrive much later, and twice. */
  #crash(): void {
    if (this.#worker === null) return;
    const { flight } = this.#worker;
    const way = this.#pick(4);
    if (way === 1 || way === 2) this.#network.delay(flight);
    if (way === 2) this.#network.delay(flight);
    if (way === 3) this.#network.arrive(flight);
    this.#worker = null;
    this.#isLeaseLost = true;
  }

  #answer({ known, flight, isProbe }: Readonly<{ known: SagaState; flight: Call; isProbe: boolean }>): void {
    const { step, op, attempt } = flight;
    this.#isProbe = false;
    this.#network.now += this.#pick(3) * 500;
    const answer = isProbe && this.#pick(2) === 1 ? lost : this.#send(flight);
    this.#settle(known, { kind: 'answered', step, op, attempt, answer, isProbe });
  }

  #send(call: Call): Answer {
    const isSilent = this.#scenario.silent.has(`${call.step} ${call.op}`);
    return isSilent && this.#turn < this.#scenario.choices.length ? lost : this.#network.send(call);
  }

  /** What belongs to no open row changes nothing; and whatever is asked at whatever time has an answer. */
  #strayAnswer(): void {
    const { workflow } = this.#scenario;
    for (const { status, step, op, attempt } of this.db.log) {
      const event: EngineEvent = { kind: 'answered', step, op, attempt, answer: answerOf('done') };
      if (status !== null) assert.equal(advance(workflow, this.db, event, this.#context()).outcome, 'stale');
    }
    const call = { step: this.#pick(7), op: 'COMPENSATE', attempt: this.#pick(3) } as const;
    for (const reply of replies)
      advance(workflow, this.db, { kind: 'answered', ...call, answer: answerOf(reply) }, this.#context());
    const isResting = isTerminal(this.db.status) || this.db.stuck !== null;
    for (const kind of ['claimed', 'worker_lost', 'given_up'] as const) {
      const event = { kind, reason: 'lost' };
      assert.equal(advance(workflow, this.db, event, this.#context()).outcome === 'stale', isResting);
    }
  }

  #toggleService(): void {
    const { steps } = this.#scenario.workflow;
    const { service } = steps[this.#pick(steps.length)] as Step;
    const troubled = this.#pick(3) === 0 ? this.#gone : this.#down;
    if (!troubled.delete(service)) troubled.add(service);
  }

  #abort(): void {
    const { status, pivotOpened, abort } = this.db;
    const kind = this.#pick(2) === 0 ? 'cancel' : 'compensate';
    const asked = requestAbort(this.db, { kind, by, at: this.#network.now });
    const isOpen = (status === 'STARTED' || status === 'RUNNING') && !pivotOpened;
    assert.equal(asked.outcome === 'stored', isOpen && abort === null);
    assert.equal(asked.outcome === 'refused', isTerminal(status) || (status === 'RUNNING' && pivotOpened));
    if (asked.outcome === 'stored') this.db = asked.state;
  }

  #person(): void {
    const { stuck } = this.db;
    const { steps } = this.#scenario.workflow;
    if (stuck === null) return this.#tell({ kind: 'retry', step: this.#pick(steps.length), by });
    if (this.#pick(6) === 5) return this.#tell({ kind: 'skip', step: stuck.step + 1, by });
    const kind = (['retry', 'resolve', 'skip'] as const)[this.#pick(3)] ?? 'retry';
    const isWorking = this.#network.participant(stuck.step).phase === 'working';
    if (kind === 'retry' || (kind === 'skip' && !isWorking))
      return this.#tell({ kind, step: stuck.step, by });
    this.#resolve(stuck.step);
  }

  /** A person looks, and says what is so; what can no longer be undone a person does by hand. */
  #resolve(step: number): void {
    const { phase, actions } = this.#network.participant(step);
    if (phase === 'working') return;
    const pivot = this.#scenario.workflow.steps.findIndex(({ isPivot }) => isPivot);
    const isBehind = pivot >= 0 && step > pivot;
    const outcome = actions > 0 || isBehind ? 'done' : 'not_done';
    this.#tell({ kind: 'resolve', step, by, outcome, output: { id: 1 } });
  }

  #tell(act: StepAction): void {
    const known = withKnown(this.db, { abort: this.db.abort, isDeadlineOver: this.#isDeadlineOver() });
    const answer = advanceByOperator(this.#scenario.workflow, known, act, this.#context());
    if (this.db.stuck?.step !== act.step)
      assert.ok(answer.outcome === 'refused' && answer.kind === 'conflict');
    if (answer.outcome === 'settle') {
      assert.ok(answer.next.do !== 'call' && answer.next.do !== 'poll');
      if (act.kind !== 'retry')
        this.#byHand.push({ step: act.step, op: this.db.stuck?.op, ...this.#network.effectsOf(act.step) });
      return this.#commit(answer);
    }
    if (answer.retryAfterMs !== undefined && this.#pick(2) === 0) this.#network.now += answer.retryAfterMs;
  }

  /** From now on all goes well, and a person is there: so it ends. */
  #calmDown(): void {
    this.#gone.clear();
    this.#down.clear();
    let pleas = 0;
    for (let turn = 0; !isTerminal(this.db.status); turn += 1) {
      assert.ok(turn < MAX_CALM_TURNS, 'it never ends');
      this.#network.completeAll();
      const { stuck } = this.db;
      if (stuck === null) this.#work();
      else if ((pleas += 1) % 3 === 1) this.#tell({ kind: 'retry', step: stuck.step, by });
      else this.#resolve(stuck.step);
    }
    // What is still on its way arrives after the end, in time for its own deadline or not.
    this.#network.deliverAllLate();
    this.#network.completeAll();
  }

  /** All done, or all undone; what a person did by hand is on nobody's books. */
  #checkEffects(): void {
    const { log, status } = this.db;
    for (const { step, op, actions, undos } of this.#byHand) {
      const now = this.#network.effectsOf(step);
      assert.equal(now.actions, actions, 'an action took place after a person had looked');
      if (op === 'COMPENSATE') assert.equal(now.undos, undos, 'an undo took place after a person had looked');
    }
    this.#scenario.workflow.steps.forEach(({ undo }, step) => {
      const { actions, undos } = this.#network.effectsOf(step);
      const rows = log.filter((row) => row.step === step);
      const isByHand = rows.some(
        ({ by, answer }) => by !== null && (answer === null || answer === 'done' || answer === 'not_done'),
      );
      if (isByHand) return;
      if (status === 'COMPLETED') assert.deepEqual([actions, undos], [1, 0]);
      else if (undo.kind === 'call') assert.equal(actions, undos);
      else if (!rows.some(({ op }) => op === 'COMPENSATE')) assert.equal(actions, 0);
    });
  }
}
