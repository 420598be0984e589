import type { Clock } from '../../kernel/clock.ts';
import type { Decide } from '../../platform/work/shared-row.ts';
import type { Circuit } from '../domain/circuit.ts';
import type { Throttle } from '../../kernel/targets/throttle.ts';

/** What all processes share about a destination: neither of both while it is healthy. */
export type DestinationState = Readonly<{ throttle: Throttle | null; circuit: Circuit | null }>;

export const healthy: DestinationState = { throttle: null, circuit: null };

export type StateReading = Readonly<{
  state: DestinationState;
  /** Grows with each write; 0 if nothing was ever written. */
  version: bigint;
  /** The database's clock at the time of the reading. */
  nowMs: number;
}>;

type DecideState<T> = Decide<DestinationState, T>;

export type DestinationStateStore = Readonly<{
  /** One reading for each destination, in one statement. */
  states(destinations: readonly string[]): Promise<ReadonlyMap<string, StateReading>>;
  /** Decides under a lock on the row; see `changeRow`. */
  change<T>(
    destination: string,
    decide: DecideState<T>,
  ): Promise<Readonly<{ reading: StateReading; result: T }>>;
}>;

/** One process's view of the state: as it was last read, and how to change it. */
export type SharedState = Readonly<{
  isKnown: () => boolean;
  state: () => DestinationState;
  /** An estimate of the database's clock from the last reading. It is never ahead of it. */
  nowMs: () => number;
  learn: (reading: StateReading, askedAtMs: number) => void;
  /** Undefined if the database failed. */
  change: <T>(decide: DecideState<T>) => Promise<Changed<T> | undefined>;
  /** After a database error no background work starts for a while. */
  pause: (error: unknown) => void;
  pausedMs: () => number;
  /** Background work: does not start again while it runs, nor in a pause. */
  inBackground: (work: () => Promise<void>) => BackgroundWork;
  /** Resolves when nothing runs in the background. */
  flush: () => Promise<void>;
}>;

/** The result of a change, and when it was asked for and answered on the monotonic clock. */
export type Changed<T> = Readonly<{ result: T; askedAtMs: number; answeredAtMs: number }>;

export type BackgroundWork = Readonly<{ begin: () => void; isRunning: () => boolean }>;

export type SharedStateDeps = Readonly<{
  store: DestinationStateStore;
  clock: Clock;
  /** The stored state has changed, by whichever process. */
  onChange: () => void;
  /** The circuit has opened or closed. */
  onTurn: () => void;
  onError: (error: unknown) => void;
}>;

/** The state is shared through the database; while that is unavailable, this process uses its own copy. */
const pauseAfterErrorMs = 1000;

export function createSharedState(deps: SharedStateDeps, destination: string): SharedState {
  const { store, clock } = deps;
  let known: (StateReading & Readonly<{ answeredAtMs: number }>) | null = null;
  let pausedUntilMs = 0;
  const running = new Set<Promise<void>>();

  const learn = (reading: StateReading, askedAtMs: number): void => {
    // A reading that was asked for before the last answer may be older than that answer.
    if (known !== null && askedAtMs < known.answeredAtMs && reading.version < known.version) return;
    const before = known;
    known = { ...reading, answeredAtMs: clock.monotonicMs() };
    if (isOpen(before) !== isOpen(known)) deps.onTurn();
    if (before?.version !== known.version) deps.onChange();
  };
  const pause = (error: unknown): void => {
    pausedUntilMs = clock.monotonicMs() + pauseAfterErrorMs;
    deps.onError(error);
  };
  const pausedMs = (): number => Math.max(0, pausedUntilMs - clock.monotonicMs());

  return {
    learn,
    pause,
    pausedMs,
    isKnown: () => known !== null,
    state: () => known?.state ?? healthy,
    nowMs: () => (known === null ? 0 : known.nowMs + clock.monotonicMs() - known.answeredAtMs),

    change: async (decide) => {
      const askedAtMs = clock.monotonicMs();
      try {
        const { reading, result } = await store.change(destination, decide);
        const answeredAtMs = clock.monotonicMs();
        learn(reading, askedAtMs);
        return { result, askedAtMs, answeredAtMs };
      } catch (error) {
        pause(error);
        return undefined;
      }
    },

    inBackground: (work) => {
      let isRunning = false;
      const run = async (): Promise<void> => {
        isRunning = true;
        await work().catch(pause);
        isRunning = false;
      };
      const begin = (): void => {
        if (isRunning || pausedMs() > 0) return;
        const ended = run().finally(() => running.delete(ended));
        running.add(ended);
      };
      return { begin, isRunning: () => isRunning };
    },

    flush: async () => {
      while (running.size > 0) await Promise.all(running);
    },
  };
}

function isOpen(reading: StateReading | null): boolean {
  return reading !== null && reading.state.circuit !== null;
}
