import { GuardedParticipant, type Handling, type Reply } from './guarded-participant.ts';
import type { Call } from '../../../src/saga/domain/settlement.ts';
import type { Answer, Failure } from '../../../src/saga/domain/judge-answer.ts';

export type Effects = Readonly<{ actions: number; undos: number }>;

/** Participants, guarded or bare, one for each step, and a network that loses, delays and doubles what it is given. */
export class SimulatedNetwork {
  readonly #participants: readonly GuardedParticipant[];
  readonly #late: Call[] = [];
  readonly #pick: (ways: number) => number;
  now = 0;

  constructor(steps: number, bare: ReadonlySet<number>, pick: (ways: number) => number) {
    this.#participants = Array.from(
      { length: steps },
      (_, step) => new GuardedParticipant({ isBare: bare.has(step) }),
    );
    this.#pick = pick;
  }

  send(call: Call): Answer {
    switch (this.#pick(14)) {
      case 7:
        return { ...lost, detail: 'connection refused', isUnsent: true };
      case 8:
        return { ...lost, class: 'defect', detail: 'not mapped', isTimeout: false, isUnsent: true };
      case 9:
        return { ...lost, class: 'defect', detail: 'not authorized', isTimeout: false };
      case 10:
        this.delay(call);
        return lost;
      case 11:
        this.arrive(call);
        this.delay(call);
        return lost;
      case 12:
        return lost;
      case 13: {
        const first = this.arrive(call);
        // Without a guard nothing helps against a network that doubles a call and answers for the second one.
        return answerOf(this.participant(call.step).isBare ? first : this.arrive(call));
      }
      default:
        return answerOf(this.arrive(call));
    }
  }

  arrive({ step, op, latestBegin }: Call): Reply {
    const handlings: readonly Handling[] = ['do', 'do', 'do', 'refuse', 'break', 'begin'];
    const handling = handlings[this.#pick(6)] ?? 'do';
    return this.participant(step).arrive({ op, now: this.now, latestBegin }, handling);
  }

  delay(call: Call): void {
    this.#late.push(call);
  }

  deliverLate(): void {
    const [call] = this.#late.splice(this.#pick(this.#late.length + 1), 1);
    if (call !== undefined) this.arrive(call);
  }

  deliverAllLate(): void {
    for (const call of this.#late.splice(0)) this.arrive(call);
  }

  /** The long actions come to their end. */
  completeAll(): void {
    for (const participant of this.#participants) participant.complete();
  }

  effectsOf(step: number): Effects {
    const { actions, undos } = this.participant(step);
    return { actions, undos };
  }

  participant(step: number): GuardedParticipant {
    return this.#participants[step] as GuardedParticipant;
  }
}

export const lost: Failure = { class: 'unknown', detail: 'no answer', isTimeout: true, isUnsent: false };

export function answerOf(reply: Reply): Answer {
  const answered = { detail: reply, isTimeout: false, isUnsent: false };
  switch (reply) {
    case 'done':
      return { class: 'done', output: { id: 1 } };
    case 'working':
      return { class: 'working' };
    case 'refused':
      return { class: 'refused', ...answered };
    case 'not_found':
      return { class: 'defect', isNotFound: true, ...answered };
    case 'unknown':
    case 'too_late':
      return { class: 'unknown', ...answered };
  }
}
