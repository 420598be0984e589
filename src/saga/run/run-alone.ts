import type { Clock } from '../../kernel/clock.ts';
import type { CallSemaphore } from './call-semaphore.ts';
import type { SagaClaim } from './claim-sagas.ts';
import type { LeasedSaga, LeasedSagas } from './leased-sagas.ts';

/**
 * A saga that has crashed its process before runs alone: one process makes room, as far as that is possible soon, and
 * runs it without others until one of its calls is answered, unless that takes too long.
 */
export type AloneDeps = Readonly<{
  clock: Clock;
  options: Readonly<{ maxLeased: number; leaseMs: number; pollMs: number }>;
  leased: LeasedSagas;
  stopping: AbortSignal;
  alone: AloneState;
  hasDueAlone: () => Promise<boolean>;
  claim: (options: SagaClaim) => Promise<readonly LeasedSaga[]>;
  calls: Pick<CallSemaphore, 'rejectWaiting'>;
}>;

/** While room is made, other sagas leave before their next call. */
export type AloneState = { isMakingRoom: boolean; checkAtMs: number };

/** Looking for sagas that must run alone costs a statement; they are rare. */
const checkEveryMs = 1000;
/** Calls that take longer run beside the saga that runs alone. */
const makeRoomWithinMs = 30_000;
/** How long sagas run alone, one after the other, before the others continue. */
const aloneForMs = 30_000;

export async function runAloneSagas(deps: AloneDeps, run: (saga: LeasedSaga) => void): Promise<void> {
  const { clock, alone: state } = deps;
  const startMs = clock.monotonicMs();
  if (startMs < state.checkAtMs) return;
  try {
    if (!(await deps.hasDueAlone())) return;
    // Claimed before there is room, so that no other process makes room as well.
    const saga = await claimAlone(deps);
    if (saga === undefined) return;
    state.isMakingRoom = true;
    deps.calls.rejectWaiting();
    await waitWhile(deps, () => deps.leased.size() > 1, makeRoomWithinMs);
    await runOneByOne(deps, saga, run);
  } finally {
    state.isMakingRoom = false;
    // The other sagas get at least as much time.
    const endMs = clock.monotonicMs();
    state.checkAtMs = endMs + Math.max(endMs - startMs, checkEveryMs);
  }
}

async function claimAlone({ claim, leased, options }: AloneDeps): Promise<LeasedSaga | undefined> {
  // A claim of one saga ignores its size.
  const [saga] = await claim({ limit: 1, bytes: 0, leaseMs: options.leaseMs, alone: true });
  if (saga !== undefined) leased.add(saga);
  return saga;
}

async function runOneByOne(
  deps: AloneDeps,
  first: LeasedSaga,
  run: (saga: LeasedSaga) => void,
): Promise<void> {
  const { clock, leased, stopping } = deps;
  const untilMs = clock.monotonicMs() + aloneForMs;
  let saga: LeasedSaga | undefined = first;
  for (; saga !== undefined; saga = await claimAlone(deps)) {
    const { id, lease } = saga;
    run(saga);
    await waitWhile(deps, () => leased.has({ id, lease }), untilMs - clock.monotonicMs());
    if (stopping.aborted || clock.monotonicMs() >= untilMs) return;
  }
}

async function waitWhile(
  { clock, leased, options, stopping }: AloneDeps,
  condition: () => boolean,
  maxMs: number,
): Promise<void> {
  const untilMs = clock.monotonicMs() + maxMs;
  while (condition() && clock.monotonicMs() < untilMs && !stopping.aborted)
    await leased.waitForRoom(options.maxLeased, options.pollMs, stopping);
}
