import { readFile } from 'node:fs/promises';
import { sleep } from '../../src/kernel/clock.ts';
import type { Fault, FaultPlan, FaultPoint } from '../chaos/support/faults.ts';
import { startReplica, type Replica } from '../chaos/support/start-replica.ts';
import type { Chance } from './chance.ts';
import type { Tally } from './tally.ts';

/** The replicas of a run. A replica that ends is restarted with another fault plan. */
export type Fleet = Readonly<{
  running(): readonly Replica[];
  killOne(): Promise<void>;
  /** Suspends a replica for this time. */
  pauseOne(ms: number): Promise<void>;
  /** Restarts all replicas without faults. */
  calm(): Promise<void>;
  stop(): Promise<void>;
}>;

export type FleetOptions = Readonly<{
  size: number;
  env: Readonly<Record<string, string>>;
  /** Where a replica may die, or lose its connection to the database. */
  points?: readonly FaultPoint[];
  chance: Chance;
  tally: Tally;
}>;

type Slot = { replica: Replica | null; isCalm: boolean };

const lookEveryMs = 50;

const orderPoints = ['order_claimed', 'order_answered', 'order_settled'] as const;

export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const { size, chance, tally } = options;
  const stopping = new AbortController();
  const slots: Slot[] = Array.from({ length: size }, () => ({ replica: null, isCalm: false }));
  const state: FleetState = { stopping: stopping.signal, killed: new Set(), isCalm: false };
  const running = (): readonly Replica[] => slots.flatMap(({ replica }) => replica ?? []);
  await Promise.all(slots.map((slot) => fill(slot, options, state)));
  const watching = Promise.all(slots.map((slot) => watch(slot, options, state)));
  return {
    running,
    async killOne() {
      const victims = running();
      if (victims.length === 0) return;
      const victim = chance.pick(victims);
      state.killed.add(victim.pid);
      tally.count('replica: killed at any moment');
      await victim.kill();
    },
    async pauseOne(ms) {
      const sleepers = running();
      if (sleepers.length === 0) return;
      const sleeper = chance.pick(sleepers);
      tally.count('replica: paused beyond its lease');
      sleeper.pause();
      await sleep(ms, stopping.signal);
      sleeper.resume();
    },
    async calm() {
      state.isCalm = true;
      // Also replicas that are starting now, once they run.
      while (slots.some((slot) => slot.replica === null || !slot.isCalm)) {
        for (const { replica } of slots.filter((slot) => !slot.isCalm)) {
          if (replica !== null) state.killed.add(replica.pid);
          await replica?.kill();
        }
        await sleep(lookEveryMs);
      }
    },
    async stop() {
      stopping.abort();
      await watching;
      for (const slot of slots) {
        if (slot.replica === null) continue;
        noteLog(slot.replica, tally);
        await slot.replica.kill();
        slot.replica = null;
      }
    },
  };
}

type FleetState = {
  readonly stopping: AbortSignal;
  /** Process ids of replicas that the fleet itself has killed. */
  readonly killed: Set<number>;
  isCalm: boolean;
};

/** Tries again if the replica dies before it is ready, or finds no database. */
async function fill(
  slot: Slot,
  { env, points = orderPoints, chance, tally }: FleetOptions,
  state: FleetState,
): Promise<void> {
  while (!state.stopping.aborted) {
    const { isCalm } = state;
    try {
      slot.replica = await startReplica(env, isCalm ? undefined : drawPlan(chance, points));
      slot.isCalm = isCalm;
      return;
    } catch {
      tally.count('replica: ended before it was ready');
      await sleep(lookEveryMs, state.stopping);
    }
  }
}

async function watch(slot: Slot, options: FleetOptions, state: FleetState): Promise<void> {
  const { chance, tally } = options;
  while (!state.stopping.aborted) {
    const { replica } = slot;
    if (replica === null) await fill(slot, options, state);
    else if (!(await isThere(replica.pid))) {
      if (!state.killed.has(replica.pid)) tally.count('replica: killed between two steps of its work');
      noteLog(replica, tally);
      slot.replica = null;
      await sleep(chance.between(0, 1500), state.stopping);
    }
    await sleep(lookEveryMs, state.stopping);
  }
}

/** Faults at random points: kills and lost database connections. */
function drawPlan(chance: Chance, points: readonly FaultPoint[]): FaultPlan {
  const faults: Fault[] = [];
  for (const at of points) {
    if (chance.is(0.25)) faults.push({ at, act: 'kill', nth: chance.between(5, 200) });
    for (let i = 0; i < 3; i += 1)
      if (chance.is(0.5)) faults.push({ at, act: 'lose_answer', nth: chance.between(1, 300) });
  }
  return { faults };
}

async function isThere(pid: number): Promise<boolean> {
  try {
    const state = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1];
    return state !== undefined && !state.startsWith('Z');
  } catch {
    return false;
  }
}

/** Counts the effects of faults in the replica's log. */
function noteLog(replica: Replica, tally: Tally): void {
  for (const line of replica.log().split('\n')) {
    const said = messageIn(line);
    if (said.msg.startsWith('dropped stale writes')) tally.count('stale writes', said.count);
    const released = /^released (\w+) of lost workers/.exec(said.msg)?.[1];
    if (released !== undefined) tally.count(`${released} released by the reaper`, said.count);
    if (said.msg.startsWith('retrying settle')) tally.count('settles retried');
  }
}

function messageIn(line: string): Readonly<{ msg: string; count: number }> {
  try {
    return { msg: '', count: 0, ...(JSON.parse(line) as object) };
  } catch {
    return { msg: '', count: 0 };
  }
}
