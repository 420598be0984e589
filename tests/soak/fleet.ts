import { readFile } from 'node:fs/promises';
import { sleep } from '../../src/kernel/clock.ts';
import type { Fault, FaultPlan, FaultPoint } from '../chaos/support/faults.ts';
import { startReplica, type Replica } from '../chaos/support/start-replica.ts';
import type { Chance } from './chance.ts';
import type { Tally } from './tally.ts';

/** The replicas of a run. One that ends is started again, with another plan of what goes wrong in it. */
export type Fleet = Readonly<{
  /** Those that run, as far as is known. */
  running(): readonly Replica[];
  killOne(): Promise<void>;
  /** Stops one for so long, and lets it go on. */
  pauseOne(ms: number): Promise<void>;
  /** From now on nothing goes wrong in a replica: all of them are started anew. */
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

export async function startFleet({
  size,
  env,
  points = orderPoints,
  chance,
  tally,
}: FleetOptions): Promise<Fleet> {
  const stopping = new AbortController();
  const slots: Slot[] = Array.from({ length: size }, () => ({ replica: null, isCalm: false }));
  const killed = new Set<number>();
  let isCalm = false;

  /** Again and again: it may die before it is ready, or find no database. */
  const fill = async (slot: Slot): Promise<void> => {
    while (!stopping.signal.aborted) {
      const wasCalm = isCalm;
      try {
        slot.replica = await startReplica(env, wasCalm ? undefined : drawPlan(chance, points));
        slot.isCalm = wasCalm;
        return;
      } catch {
        tally.count('replica: ended before it was ready');
        await sleep(lookEveryMs, stopping.signal);
      }
    }
  };

  const watch = async (slot: Slot): Promise<void> => {
    while (!stopping.signal.aborted) {
      const { replica } = slot;
      if (replica === null) await fill(slot);
      else if (!(await isThere(replica.pid))) {
        if (!killed.has(replica.pid)) tally.count('replica: killed between two steps of its work');
        noteLog(replica, tally);
        slot.replica = null;
        await sleep(chance.between(0, 1500), stopping.signal);
      }
      await sleep(lookEveryMs, stopping.signal);
    }
  };

  const running = (): readonly Replica[] => slots.flatMap(({ replica }) => replica ?? []);
  await Promise.all(slots.map(fill));
  const watching = Promise.all(slots.map(watch));
  return {
    running,
    async killOne() {
      const victims = running();
      if (victims.length === 0) return;
      const victim = chance.pick(victims);
      killed.add(victim.pid);
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
      isCalm = true;
      // Also those that are being started this moment, when they are there.
      while (slots.some((slot) => slot.replica === null || !slot.isCalm)) {
        for (const { replica } of slots.filter((slot) => !slot.isCalm)) {
          if (replica !== null) killed.add(replica.pid);
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

/** Each point at which a process may die or lose its connection, now and then. */
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

/** What its log tells of the faults that struck it. */
function noteLog(replica: Replica, tally: Tally): void {
  for (const line of replica.log().split('\n')) {
    const said = messageIn(line);
    if (said.msg.startsWith('stale writes')) tally.count('stale writes', said.count);
    if (said.msg.startsWith('attempts of lost')) tally.count('attempts ended by the reaper', said.count);
    if (said.msg.startsWith('sagas of lost')) tally.count('sagas let go by the reaper', said.count);
    if (said.msg.startsWith('settling is tried')) tally.count('settles repeated');
  }
}

function messageIn(line: string): Readonly<{ msg: string; count: number }> {
  try {
    return { msg: '', count: 0, ...(JSON.parse(line) as object) };
  } catch {
    return { msg: '', count: 0 };
  }
}
