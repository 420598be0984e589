import { sleep } from '../../src/kernel/clock.ts';
import type { RestartablePostgres } from '../chaos/support/restartable-postgres.ts';
import type { ParticipantScript } from '../support/participant/script.ts';
import { spawnParticipant, type SpawnedParticipant } from '../support/participant/spawn-participant.ts';
import type { Chance } from './chance.ts';
import type { Fleet } from './fleet.ts';
import { patiently } from './patiently.ts';
import { drawSagaMood, kindly, type SagaMood } from './saga-moods.ts';
import type { Tally } from './tally.ts';

/** A participant whose tables outlive it. */
export type MortalParticipant = Readonly<{
  current(): SpawnedParticipant;
  /** One that is away takes it up when it comes back. */
  setMood(mood: SagaMood): Promise<void>;
  /** Kills it, and starts the next one after a while. */
  die(awayMs: number): Promise<void>;
}>;

export async function startMortalParticipant(databaseUrl: string): Promise<MortalParticipant> {
  let script: ParticipantScript = kindly.script;
  let participant = await spawnParticipant({ databaseUrl, script });
  let isThere = true;
  const { port } = participant;
  return {
    current: () => participant,
    async setMood(mood) {
      script = mood.script;
      if (isThere)
        await participant.setScript(script).catch((error: unknown) => {
          if (isThere) throw error;
        });
    },
    async die(awayMs) {
      isThere = false;
      process.kill(participant.pid, 'SIGKILL');
      await sleep(awayMs);
      participant = await spawnParticipant({ databaseUrl, port, script });
      isThere = true;
    },
  };
}

export type SagaFaultDeps = Readonly<{
  leaseMs: number;
  fleet: Fleet;
  postgres: RestartablePostgres;
  participant: MortalParticipant;
  chance: Chance;
  tally: Tally;
}>;

/** Until it is told to stop, something goes wrong every now and then; one thing at a time, but moods change beside. */
export function startSagaFaults(deps: SagaFaultDeps): Readonly<{ stop(): Promise<void> }> {
  const stopping = new AbortController();
  const { signal } = stopping;
  const moods = deps.chance.fork();
  const strikeAgain = async (): Promise<void> => {
    while (!signal.aborted) {
      await sleep(deps.chance.between(200, 4000), signal);
      if (!signal.aborted) await strike(deps);
    }
  };
  const changeMoods = async (): Promise<void> => {
    while (!signal.aborted) {
      const mood = drawSagaMood(moods);
      deps.tally.count(`participant: ${mood.name}`);
      await deps.participant.setMood(mood);
      await sleep(moods.between(500, 3000), signal);
    }
  };
  const running = Promise.all([strikeAgain(), changeMoods()]);
  return {
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

async function strike({
  chance,
  tally,
  fleet,
  postgres,
  participant,
  leaseMs,
}: SagaFaultDeps): Promise<void> {
  const drawn = chance.next();
  if (drawn < 0.35) return fleet.killOne();
  if (drawn < 0.65) return fleet.pauseOne(leaseMs + chance.between(200, 4000));
  if (drawn < 0.85) {
    tally.count('participant: killed and started again');
    return patiently(() => participant.die(chance.between(100, 2500)));
  }
  tally.count('postgres: crashed and started again');
  await postgres.crash();
  await sleep(chance.between(0, 3000));
  await postgres.restart();
}
