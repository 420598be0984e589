import type { Clock } from '../../kernel/clock.ts';
import { extendStreak, noStreak, openCircuit, outageOf, type CircuitTiming } from '../domain/circuit.ts';
import type { SendOutcome } from '../domain/order.ts';
import { countSent, emptyMeter, measuredRate, noteLimited, type Limited } from '../../kernel/throttle.ts';
import type { SharedState } from './shared-state.ts';

/**
 * Watches how this process's attempts end, and writes down what all processes have to know: a 429, and an outage.
 * In the background, one write at a time; what could not be written is kept and written later. As long as there is
 * something to write, nothing more is claimed.
 */
export type TroubleWatch = Readonly<{
  hasNews: () => boolean;
  /** It has seen an outage, and all processes will know in a moment. */
  seesOutage: () => boolean;
  /** So many were handed to the sender. */
  noteStart: (count: number) => void;
  /** An attempt, or a probe, has ended. */
  noteEnd: (outcome: SendOutcome) => void;
  /** Whose attempt it was matters for the circuit; a probe is not counted here. */
  noteOrder: (orderId: bigint, outcome: SendOutcome) => void;
  forgetStreak: () => void;
  publish: () => void;
}>;

export type TroubleWatchDeps = Readonly<{
  shared: SharedState;
  clock: Clock;
  timing: CircuitTiming;
  replicas: () => number;
}>;

/** 429s that are not written down yet: how fast the destination was sent to, and until when it wants nothing. */
type Refusal = Readonly<{ measuredRate: number; untilMs: number }>;

export function createTroubleWatch({ shared, clock, timing, replicas }: TroubleWatchDeps): TroubleWatch {
  let begun = emptyMeter;
  let ended = emptyMeter;
  let streak = noStreak;
  let refusal: Refusal | null = null;

  const limitedOf = ({ measuredRate, untilMs }: Refusal): Limited => ({
    measuredRate,
    retryAfterMs: untilMs - clock.monotonicMs(),
  });
  /** Most 429s of a storm change nothing any more, and need not be told. */
  const isOld = (one: Refusal): boolean => {
    const { throttle } = shared.state();
    return throttle !== null && noteLimited(throttle, limitedOf(one), shared.nowMs()) === throttle;
  };

  const publishing = shared.inBackground(async () => {
    for (;;) {
      const told = refusal === null || isOld(refusal) ? null : refusal;
      const outage = outageOf(streak);
      refusal = null;
      if (told === null && outage === null) return;
      const done = await shared.change(({ throttle, circuit }, nowMs) => ({
        state: {
          throttle: told === null ? throttle : noteLimited(throttle, limitedOf(told), nowMs),
          circuit: outage === null ? circuit : openCircuit(circuit, outage, nowMs, timing),
        },
        result: null,
      }));
      if (done === undefined) {
        refusal = strongerOf(told, refusal);
        return;
      }
      if (outage !== null) streak = noStreak;
    }
  });

  /** By what was begun as much as by what has ended: a refusal is often quicker than the work before it. */
  const ownRate = (nowMs: number): number => Math.max(measuredRate(begun, nowMs), measuredRate(ended, nowMs));

  return {
    hasNews: () => refusal !== null || outageOf(streak) !== null || publishing.isRunning(),
    seesOutage: () => outageOf(streak) !== null,
    publish: publishing.begin,
    forgetStreak: () => void (streak = noStreak),
    noteStart: (count) => void (begun = countSent(begun, count, clock.monotonicMs())),

    noteEnd: (outcome) => {
      if (outcome.end === 'released') return;
      const nowMs = clock.monotonicMs();
      ended = countSent(ended, 1, nowMs);
      if (outcome.end !== 'limited') return;
      refusal = strongerOf(refusal, {
        measuredRate: ownRate(nowMs) * Math.max(1, replicas()),
        untilMs: nowMs + (outcome.retryAfterMs ?? 0),
      });
      publishing.begin();
    },

    noteOrder: (orderId, outcome) => {
      // What ends while the circuit is open was begun before, and tells nothing new.
      if (shared.state().circuit !== null) return;
      streak = extendStreak(streak, orderId, outcome);
      if (outageOf(streak) !== null) publishing.begin();
    },
  };
}

function strongerOf(one: Refusal | null, other: Refusal | null): Refusal | null {
  if (one === null || other === null) return one ?? other;
  return {
    measuredRate: Math.max(one.measuredRate, other.measuredRate),
    untilMs: Math.max(one.untilMs, other.untilMs),
  };
}
