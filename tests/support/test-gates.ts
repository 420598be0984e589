import type { SendOutcome } from '../../src/outbox/domain/order.ts';
import { createDestinationGate, type DestinationGate } from '../../src/outbox/deliver/destination-gate.ts';
import {
  healthy,
  type DestinationStateStore,
  type StateReading,
} from '../../src/outbox/deliver/shared-state.ts';

export const sent: SendOutcome = {
  end: 'sent',
  answer: { status: 200, digest: 'sha256:00', outsideId: null },
  isConflict: false,
};
export const limited = { end: 'limited', detail: '429' } as const;
export const timeout: SendOutcome = { end: 'unknown', code: 'NETWORK_TIMEOUT', detail: 'no answer' };
export const startMs = 1_800_000_000_000;
const timing = { initialMs: 5000, maxMs: 60_000, leaseMs: 8000 };

/**
 * For tests, gates of several processes to one destination. Their shared state is in memory, may be slow or away, and
 * the clock stands still until a test moves it.
 */
export function createScene(replicas = 1) {
  const scene = {
    ms: 0,
    isAway: false,
    /** How long a change takes before, and after, it is decided. */
    lag: { before: 0, after: 0 },
    changes: 0,
    errors: 0,
    nudges: 0,
    onNudge: () => {},
    /** What else happens between a decision and its answer. */
    meanwhile: () => {},
    reading: { state: healthy, version: 0n } as Omit<StateReading, 'nowMs'>,
  };
  const nowMs = (): number => startMs + scene.ms;
  const store: DestinationStateStore = {
    async states(destinations) {
      if (scene.isAway) throw new Error('away');
      return new Map(destinations.map((name) => [name, { ...scene.reading, nowMs: nowMs() }]));
    },
    async change(_destination, decide) {
      scene.changes += 1;
      if (scene.isAway) throw new Error('away');
      scene.ms += scene.lag.before;
      const decidedAtMs = nowMs();
      const { state, result } = decide(scene.reading.state, decidedAtMs);
      const { throttle, circuit } = scene.reading.state;
      if (state.throttle !== throttle || state.circuit !== circuit)
        scene.reading = { state, version: scene.reading.version + 1n };
      const reading = { ...scene.reading, nowMs: decidedAtMs };
      scene.ms += scene.lag.after;
      scene.meanwhile();
      return { reading, result };
    },
  };
  const clock = { now: () => new Date(nowMs()), monotonicMs: () => scene.ms };
  const deps = {
    store,
    clock,
    timing,
    replicas: () => replicas,
    onChange: () => {
      scene.nudges += 1;
      scene.onNudge();
    },
    onError: () => void (scene.errors += 1),
  };
  const newGate = async (): Promise<DestinationGate> => {
    const gate = createDestinationGate(deps, 'broker');
    await gate.refresh();
    return gate;
  };
  return { scene, deps, newGate };
}

/** Everything that it may claim right now. */
export async function claimAll(gate: DestinationGate): Promise<number> {
  let claimed = gate.mayClaim().limit;
  await gate.flush();
  claimed += gate.mayClaim().limit;
  return claimed;
}

export async function failFive(gate: DestinationGate): Promise<void> {
  for (const id of [1n, 2n, 3n, 4n, 5n]) gate.report(id, timeout);
  await gate.flush();
}

export async function limit(gate: DestinationGate, rate: number, retryAfterMs?: number): Promise<void> {
  gate.started(rate);
  gate.report(1n, { ...limited, retryAfterMs });
  await gate.flush();
}
