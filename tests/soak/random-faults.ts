import { sleep } from '../../src/kernel/clock.ts';
import type { RestartablePostgres } from '../chaos/support/restartable-postgres.ts';
import type { ScriptRules } from '../support/partner.ts';
import { spawnPartner, type SpawnedPartner, type SpawnOptions } from '../support/partner/spawn-partner.ts';
import type { Chance } from './chance.ts';
import type { Fleet } from './fleet.ts';
import { drawMood, kind, type Mood } from './partner-moods.ts';
import type { Tally } from './tally.ts';

/** A partner whose book outlives it. */
export type MortalPartner = Readonly<{
  url: string;
  statusUrl: string;
  /** One that is away takes it up when it comes back. */
  setMood(mood: Mood): Promise<void>;
  /** Kills it, and starts the next one after a while. */
  die(awayMs: number): Promise<void>;
  effects: SpawnedPartner['effects'];
  stop(): Promise<void>;
}>;

export async function startMortalPartner(options: SpawnOptions): Promise<MortalPartner> {
  let script: ScriptRules = kind.script;
  let partner = await spawnPartner({ ...options, script });
  let isThere = true;
  const { url, statusUrl, port } = partner;
  return {
    url,
    statusUrl,
    async setMood(mood) {
      script = mood.script;
      if (isThere) await partner.setScript(script).catch(unless(() => isThere));
    },
    async die(awayMs) {
      isThere = false;
      process.kill(partner.pid, 'SIGKILL');
      await sleep(awayMs);
      partner = await spawnPartner({ ...options, port, script });
      isThere = true;
    },
    effects: () => partner.effects(),
    stop: () => partner.stop(),
  };
}

/** Who dies while it is asked does not answer. */
function unless(isThere: () => boolean): (error: unknown) => void {
  return (error) => {
    if (isThere()) throw error;
  };
}

export type FaultDeps = Readonly<{
  leaseMs: number;
  fleet: Fleet;
  postgres: RestartablePostgres;
  partners: readonly MortalPartner[];
  chance: Chance;
  tally: Tally;
}>;

/** Until it is told to stop, something goes wrong every now and then; one thing at a time, but moods change beside. */
export function startFaults(deps: FaultDeps): Readonly<{ stop(): Promise<void> }> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const moods = deps.chance.fork();
  const strikeAgain = async (): Promise<void> => {
    while (!signal.aborted) {
      await sleep(deps.chance.between(200, 4000), signal);
      if (!signal.aborted) await strike(deps);
    }
  };
  const running = strikeAgain();
  const changing = changeMoods(deps, moods, signal);
  return {
    async stop() {
      stopping.abort();
      await Promise.all([running, changing]);
    },
  };
}

async function strike({ chance, tally, fleet, postgres, partners, leaseMs }: FaultDeps): Promise<void> {
  const drawn = chance.next();
  if (drawn < 0.3) return fleet.killOne();
  if (drawn < 0.6) return fleet.pauseOne(leaseMs + chance.between(200, 4000));
  if (drawn < 0.85) {
    tally.count('partner: killed and started again');
    return chance.pick(partners).die(chance.between(100, 2500));
  }
  tally.count('postgres: crashed and started again');
  await postgres.crash();
  await sleep(chance.between(0, 3000));
  await postgres.restart();
}

async function changeMoods(
  { partners, tally }: FaultDeps,
  chance: Chance,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const mood = drawMood(chance);
    tally.count(`partner: ${mood.name}`);
    await chance.pick(partners).setMood(mood);
    await sleep(chance.between(500, 3000), signal);
  }
}
