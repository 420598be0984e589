import type { Clock } from '../../kernel/clock.ts';
import type { Circuit } from '../domain/circuit.ts';
import type { Throttle } from '../../kernel/throttle.ts';

/** What all processes share about a destination: nothing, while nothing is wrong with it. */
export type DestinationState = Readonly<{ throttle: Throttle | null; circuit: Circuit | null }>;

export const untroubled: DestinationState = { throttle: null, circuit: null };

export type StateReading = Readonly<{
  state: DestinationState;
  /** Grows with each write; 0 where nothing was ever written. */
  version: bigint;
  /** The database's clock at that moment. */
  nowMs: number;
}>;

export type Decision<T> = Readonly<{ state: DestinationState; result: T }>;

/** By the database's clock. */
export type Decide<T> = (state: DestinationState, nowMs: number) => Decision<T>;

export type DestinationStateStore = Readonly<{
  /** In one statement; there is a reading for each. */
  states(destinations: readonly string[]): Promise<ReadonlyMap<string, StateReading>>;
  /** Decides under a lock on the state; throttle and circuit that come back as the same values are not written. */
  change<T>(destination: string, decide: Decide<T>): Promise<Readonly<{ reading: StateReading; result: T }>>;
}>;

/** One process's view of it: the state as it was last read, and the way to change it. */
export type SharedState = Readonly<{
  isKnown: () => boolean;
  state: () => DestinationState;
  /** The database's clock, as far as the last reading tells. Never ahead of it: what it ends does not end here before. */
  nowMs: () => number;
  learn: (reading: StateReading, askedAtMs: number) => void;
  /** Undefined where the database could not be asked. */
  change: <T>(decide: Decide<T>) => Promise<Changed<T> | undefined>;
  /** After an error of the database nothing is begun for a while. */
  pause: (error: unknown) => void;
  pausedMs: () => number;
  /** Work for the background: not begun again while it runs, nor in a pause. */
  inBackground: (work: () => Promise<void>) => BackgroundWork;
  /** Resolves when nothing runs in the background any more. */
  flush: () => Promise<void>;
}>;

/** What came of a change, and when on the monotonic clock it was asked for and answered. */
export type Changed<T> = Readonly<{ result: T; askedAtMs: number; answeredAtMs: number }>;

export type BackgroundWork = Readonly<{ begin: () => void; isRunning: () => boolean }>;

export type SharedStateDeps = Readonly<{
  store: DestinationStateStore;
  clock: Clock;
  /** Something was written by whomever: who waits asks again. */
  onChange: () => void;
  /** The circuit was closed and is open now, or the other way round. */
  onTurn: () => void;
  onError: (error: unknown) => void;
}>;

const pauseAfterErrorMs = 1000;

export function createSharedState(deps: SharedStateDeps, destination: string): SharedState {
  const { store, clock } = deps;
  let known: (StateReading & Readonly<{ answeredAtMs: number }>) | null = null;
  let pausedUntilMs = 0;
  const running = new Set<Promise<void>>();

  const learn = (reading: StateReading, askedAtMs: number): void => {
    // What was asked before the last answer came may be older than that answer.
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
    state: () => known?.state ?? untroubled,
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
