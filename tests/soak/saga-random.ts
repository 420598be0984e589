import { sleep } from '../../src/kernel/clock.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { findSagaBreaches } from '../chaos/support/saga-breaches.ts';
import { keepSagaHistory } from '../chaos/support/saga-history.ts';
import { sagaEnv, servicesOf } from '../chaos/support/saga-scene.ts';
import { startRestartablePostgres } from '../chaos/support/restartable-postgres.ts';
import { spawnParticipant } from '../support/participant/spawn-participant.ts';
import { createChance } from './chance.ts';
import { startFleet } from './fleet.ts';
import { startMortalParticipant, startSagaFaults } from './random-saga-faults.ts';
import { startSagaPeople } from './random-saga-people.ts';
import { beginSagas } from './random-sagas.ts';
import { kindly } from './saga-moods.ts';
import { createTally, type Tally } from './tally.ts';

/**
 * `node tests/soak/saga-random.ts [sagas] [seed]`: begins sagas of random shapes in two replicas while everything
 * around them fails at random and people cancel some, lets all of it come to rest, and proves that each saga is done or
 * undone or waits for a person. What is drawn is the same for the same seed; when it strikes is not.
 */
const [sagas = 5000, seed = Date.now() % 1_000_000] = process.argv.slice(2).map(Number);

const perSecond = 25;
const restWithinMs = 420_000;
const restRoundMs = 500;
const tellEveryRounds = 60;
const toldBreaches = 40;

process.exitCode = await main();

async function main(): Promise<number> {
  say(`${sagas} sagas, seed ${seed}`);
  const chance = createChance(seed);
  const tally = createTally();
  const postgres = await startRestartablePostgres();
  await keepSagaHistory(postgres.db);
  const participant = await startMortalParticipant(postgres.url);
  // It has an address, and nobody is there until all else is calm.
  const gone = await spawnParticipant({ databaseUrl: postgres.url });
  await gone.stop();
  const services = servicesOf(participant.current(), gone.guardedUrl);
  const env = { ...sagaEnv, ...services, DATABASE_URL: postgres.url };
  const points = ['saga_claimed', 'saga_settling', 'saga_settled'] as const;
  const fleet = await startFleet({ size: 2, env, points, chance: chance.fork(), tally });
  const shared = { db: postgres.db, tally };
  const leaseMs = Number(sagaEnv.SAGA_LEASE_SECS) * 1000;
  const people = startSagaPeople({ ...shared, chance: chance.fork() });
  const faults = startSagaFaults({ ...shared, leaseMs, fleet, postgres, participant, chance: chance.fork() });
  try {
    say('sagas begin, and things go wrong');
    const begun = await beginSagas({ ...shared, count: sagas, perSecond, chance: chance.fork() });
    await faults.stop();
    await people.stop();
    say('all sagas have begun, and nothing goes wrong any more');
    await participant.setMood(kindly);
    const back = await spawnParticipant({ databaseUrl: postgres.url, port: gone.port });
    await fleet.calm();
    await comeToRest(postgres.db);
    await fleet.stop();
    await back.stop();
    const effects = await participant.current().guardedEffects();
    const breaches = [
      ...people.breaches(),
      ...(await findSagaBreaches(postgres.db, { begun, effects, guarded: ['shop', 'gone'] })),
    ];
    await countEnds(postgres.db, tally);
    return conclude(tally, breaches);
  } finally {
    await Promise.all([faults.stop(), people.stop()]);
    await fleet.stop();
    await participant.current().stop();
    await postgres.stop();
  }
}

function say(line: string): void {
  process.stdout.write(`${(performance.now() / 1000).toFixed(0).padStart(5)} s  ${line}\n`);
}

/** What is tried again, or waits for a service, waits five minutes or so at the longest; whoever takes longer is told about. */
async function comeToRest(db: Database): Promise<void> {
  const giveUpAtMs = performance.now() + restWithinMs;
  for (let rounds = 1; performance.now() < giveUpAtMs; rounds += 1) {
    const [row] = await db.query<{ waiting: bigint; example: string }>(sql`
      SELECT count(*) AS waiting, min(concat_ws(' ', id, status, 'owner', lease_owner, 'wake', wake_at)) AS example
      FROM saga.saga_states WHERE status IN ('STARTED', 'RUNNING', 'COMPENSATING') AND NOT needs_attention`);
    if (row?.waiting === 0n) return say('everything is at rest');
    if (rounds % tellEveryRounds === 0) say(`${row?.waiting} are not at rest, such as ${row?.example}`);
    await sleep(restRoundMs);
  }
  say(`not everything is at rest after ${restWithinMs / 1000} s`);
}

async function countEnds(db: Database, tally: Tally): Promise<void> {
  const ends = await db.query<{ name: string; count: bigint }>(sql`
    SELECT concat_ws(' ', 'end:', status, CASE WHEN needs_attention THEN 'waits for a person at' END, stuck_op) AS name,
           count(*) AS count
    FROM saga.saga_states GROUP BY 1`);
  const attempts = await db.query<{ name: string; count: bigint }>(sql`
    SELECT concat_ws(' ', 'attempt:', action, status, answer, CASE WHEN error_message = 'worker lost' THEN '(lost)' END,
                     CASE WHEN is_unsent THEN '(not sent)' END) AS name, count(*) AS count
    FROM saga.saga_step_logs GROUP BY 1`);
  for (const { name, count } of [...ends, ...attempts]) tally.count(name, Number(count));
}

function conclude(tally: Tally, breaches: readonly string[]): number {
  process.stdout.write(`\n${tally.lines().join('\n')}\n\n`);
  for (const breach of breaches.slice(0, toldBreaches)) process.stdout.write(`BREACH  ${breach}\n`);
  const isKept = breaches.length === 0;
  say(
    isKept
      ? `KEPT: each of the ${sagas} sagas is done, undone or with a person (seed ${seed})`
      : `BROKEN: ${breaches.length} breaches (seed ${seed})`,
  );
  return isKept ? 0 : 1;
}
