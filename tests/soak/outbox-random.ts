import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sleep } from '../../src/kernel/clock.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { findBreaches } from '../chaos/support/order-breaches.ts';
import { honest, outboxEnv } from '../chaos/support/outbox-scene.ts';
import { startRestartablePostgres } from '../chaos/support/restartable-postgres.ts';
import { createChance } from './chance.ts';
import { startFleet } from './fleet.ts';
import { kind, timeoutMs } from './partner-moods.ts';
import { startFaults, startMortalPartner, type MortalPartner } from './random-faults.ts';
import { placeOrders } from './random-orders.ts';
import { startPeople, type People } from './random-people.ts';
import { createTally, type Tally } from './tally.ts';

/**
 * `node tests/soak/outbox-random.ts [orders] [seed]`: places orders in two replicas while everything around them
 * fails at random, lets all of it come to rest, and proves that each order has happened once or is accounted for. What
 * is drawn is the same for the same seed; when it strikes is not.
 */
const [orders = 20_000, seed = Date.now() % 1_000_000] = process.argv.slice(2).map(Number);

const leaseMs = 3000;
const retryMax = 4;
const perSecond = 75;
const restWithinMs = 240_000;
const toldBreaches = 40;

const settings = {
  OUTBOX_STUCK_THRESHOLD_MIN: String(leaseMs / 60_000),
  OUTBOX_RETRY_MAX: String(retryMax),
  OUTBOX_BACKOFF_MAX_MS: '500',
} as const;

process.exitCode = await main();

async function main(): Promise<number> {
  say(`${orders} orders, seed ${seed}`);
  const chance = createChance(seed);
  const tally = createTally();
  const folder = await mkdtemp(join(tmpdir(), 'redrive-soak-'));
  const postgres = await startRestartablePostgres();
  // The one drops doubles of a key; for the other every request is an effect.
  const faithful = await startMortalPartner({ ledgerFile: join(folder, 'faithful') });
  const careless = await startMortalPartner({ ledgerFile: join(folder, 'careless'), honoursKeys: false });
  const partners = [faithful, careless];
  const env = { ...outboxEnv, ...settings, ...destinations(faithful, careless), DATABASE_URL: postgres.url };
  const fleet = await startFleet({ size: 2, env, chance: chance.fork(), tally });
  const shared = { db: postgres.db, fleet, tally };
  const people = startPeople({ ...shared, chance: chance.fork() });
  const faults = startFaults({ ...shared, leaseMs, postgres, partners, chance: chance.fork() });
  try {
    say('orders are placed, and things go wrong');
    const placed = await placeOrders({ ...shared, count: orders, perSecond, chance: chance.fork() });
    await faults.stop();
    await people.stop();
    say('all orders are placed, and nothing goes wrong any more');
    await Promise.all(partners.map((partner) => partner.setMood(kind)));
    await fleet.calm();
    await comeToRest(postgres.db, people);
    await fleet.stop();
    const effects = await Promise.all(partners.map((partner) => partner.effects()));
    const accepted = [...placed.accepted, ...(await corrections(postgres.db))];
    const account = { accepted, effects: effects.flat(), retryMax, askable: ['asked'] };
    const breaches = [
      ...placed.breaches,
      ...people.breaches(),
      ...(await findBreaches(postgres.db, account)),
    ];
    await countEnds(postgres.db, tally);
    return conclude(tally, breaches);
  } finally {
    await Promise.all([faults.stop(), people.stop()]);
    await fleet.stop();
    await Promise.all(partners.map((partner) => partner.stop()));
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

function say(line: string): void {
  process.stdout.write(`${(performance.now() / 1000).toFixed(0).padStart(5)} s  ${line}\n`);
}

/** One that believes the partner, one that asks it, and one that has nobody to ask. */
function destinations(faithful: MortalPartner, careless: MortalPartner): Readonly<Record<string, string>> {
  const conflict = { field: 'code', processed: ['already_processed'], running: ['in_progress'] };
  const believing = { timeout_ms: timeoutMs, conflict };
  const doubting = { ...believing, idempotency: 'none' };
  return {
    OUTBOX_DESTINATIONS: JSON.stringify({
      broker: honest(faithful.url, believing),
      asked: honest(careless.url, { ...doubting, status_url: careless.statusUrl }),
      blind: honest(careless.url, doubting),
    }),
  };
}

/** What a dead order holds back goes on when a person has decided about it. */
async function comeToRest(db: Database, people: People): Promise<void> {
  const giveUpAtMs = performance.now() + restWithinMs;
  while (performance.now() < giveUpAtMs) {
    const decided = await people.tidyUp();
    const [row] = await db.query<{ waiting: bigint }>(sql`
      SELECT count(*) AS waiting FROM outbox.outbox_orders WHERE status IN ('queued', 'sending', 'failed')`);
    if (decided === 0 && row?.waiting === 0n) return say('everything is at rest');
    await sleep(500);
  }
  say(`not everything is at rest after ${restWithinMs / 1000} s`);
}

/** Orders that persons have put in the place of dead ones. */
async function corrections(db: Database): Promise<readonly string[]> {
  const rows = await db.query<{ key: string }>(sql`
    SELECT idempotency_key AS key FROM outbox.outbox_orders WHERE supersedes_id IS NOT NULL`);
  return rows.map(({ key }) => key);
}

async function countEnds(db: Database, tally: Tally): Promise<void> {
  const ends = await db.query<{ name: string; count: bigint }>(sql`
    SELECT concat_ws(' ', 'end:', status, resolution,
                     CASE WHEN status = 'dead' THEN split_part(last_error, ':', 1) END) AS name, count(*) AS count
    FROM outbox.outbox_orders GROUP BY 1`);
  const steps = await db.query<{ name: string; count: bigint }>(sql`
    SELECT CASE WHEN reason = 'late success' THEN 'attempt: late success'
                WHEN reason LIKE 'the ledger knows%' THEN 'attempt: the ledger knew of a success'
                WHEN last_error IS NOT NULL THEN 'attempt: ' || split_part(last_error, ':', 1)
                ELSE 'attempt: given back unsent' END AS name, count(*) AS count
    FROM outbox.outbox_audit
    WHERE (status_from = 'sending' AND (status_to <> 'sent' OR reason IS NOT NULL)) OR reason = 'late success'
    GROUP BY 1`);
  for (const { name, count } of [...ends, ...steps]) tally.count(name, Number(count));
}

function conclude(tally: Tally, breaches: readonly string[]): number {
  process.stdout.write(`\n${tally.lines().join('\n')}\n\n`);
  for (const breach of breaches.slice(0, toldBreaches)) process.stdout.write(`BREACH  ${breach}\n`);
  const isKept = breaches.length === 0;
  say(
    isKept
      ? `KEPT: each of the ${orders} orders happened once or is accounted for (seed ${seed})`
      : `BROKEN: ${breaches.length} breaches (seed ${seed})`,
  );
  return isKept ? 0 : 1;
}
