import type { Clock } from '../../kernel/clock.ts';
import { createRateMeter } from '../../kernel/targets/rate-meter.ts';
import { noteLimited, type Limited } from '../../kernel/targets/throttle.ts';
import { extendStreak, noStreak, openCircuit, outageOf, type CircuitTiming } from '../domain/circuit.ts';
import type { SendOutcome } from '../domain/order.ts';
import type { SharedState } from './shared-state.ts';

/**
 * Reports 429s and outages that this process sees to all processes, through the shared state. It writes in the
 * background, one write at a time; a report that could not be written is kept and written later. While there is
 * something to write, nothing more is claimed.
 */
export type FailureReporter = Readonly<{
  hasUnwritten: () => boolean;
  /** This process has seen an outage that the others do not know of yet. */
  seesOutage: () => boolean;
  /** Orders were handed to the sender. */
  countStarted: (count: number) => void;
  /** The outcome of an attempt or a probe, for the throttle. */
  reportRate: (outcome: SendOutcome) => void;
  /** The outcome of an attempt that is no probe, for the circuit. */
  reportOutcome: (orderId: bigint, outcome: SendOutcome) => void;
  resetStreak: () => void;
  write: () => void;
}>;

export type FailureReporterDeps = Readonly<{
  shared: SharedState;
  clock: Clock;
  timing: CircuitTiming;
  replicas: () => number;
}>;

/** 429s that are not written yet: the rate at which they came, and the latest Retry-After on the monotonic clock. */
type RateRefusal = Readonly<{ measuredRate: number; untilMs: number }>;

export function createFailureReporter(deps: FailureReporterDeps): FailureReporter {
  const { shared, clock, timing, replicas } = deps;
  const meter = createRateMeter(clock, replicas);
  let streak = noStreak;
  let refusal: RateRefusal | null = null;

  const limitedOf = ({ measuredRate, untilMs }: RateRefusal): Limited => ({
    measuredRate,
    retryAfterMs: untilMs - clock.monotonicMs(),
  });
  /** Most 429s of a storm change nothing, and need not be written. */
  const changesNothing = (one: RateRefusal): boolean => {
    const { throttle } = shared.state();
    return throttle !== null && noteLimited(throttle, limitedOf(one), shared.nowMs()) === throttle;
  };

  const writing = shared.inBackground(async () => {
    for (;;) {
      const limited = refusal === null || changesNothing(refusal) ? null : refusal;
      const outage = outageOf(streak);
      refusal = null;
      if (limited === null && outage === null) return;
      const done = await shared.change(({ throttle, circuit }, nowMs) => ({
        state: {
          throttle: limited === null ? throttle : noteLimited(throttle, limitedOf(limited), nowMs),
          circuit: outage === null ? circuit : openCircuit(circuit, outage, nowMs, timing),
        },
        result: null,
      }));
      if (done === undefined) {
        refusal = strongerOf(limited, refusal);
        return;
      }
      if (outage !== null) streak = noStreak;
    }
  });

  return {
    hasUnwritten: () => refusal !== null || outageOf(streak) !== null || writing.isRunning(),
    seesOutage: () => outageOf(streak) !== null,
    write: writing.begin,
    resetStreak: () => void (streak = noStreak),
    countStarted: meter.started,

    reportRate: (outcome) => {
      if (outcome.end === 'released') return;
      meter.ended();
      if (outcome.end !== 'limited') return;
      refusal = strongerOf(refusal, {
        measuredRate: meter.rate(),
        untilMs: clock.monotonicMs() + (outcome.retryAfterMs ?? 0),
      });
      writing.begin();
    },

    reportOutcome: (orderId, outcome) => {
      // An attempt that ends while the circuit is open was started before, and says nothing new.
      if (shared.state().circuit !== null) return;
      streak = extendStreak(streak, orderId, outcome);
      if (outageOf(streak) !== null) writing.begin();
    },
  };
}

function strongerOf(one: RateRefusal | null, other: RateRefusal | null): RateRefusal | null {
  if (one === null || other === null) return one ?? other;
  return {
    measuredRate: Math.max(one.measuredRate, other.measuredRate),
    untilMs: Math.max(one.untilMs, other.untilMs),
  };
}
