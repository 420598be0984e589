import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { cpus } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { Client } from 'pg';
import { migrationSources } from '../src/compose.ts';
import type { Database } from '../src/platform/postgres/database.ts';
import { migrateUp } from '../src/platform/postgres/migrate.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import { connectTo } from '../tests/support/database.ts';
import {
  deliveryEnv,
  drain,
  emptyOutbox,
  fillOrders,
  httpDestination,
  middle,
  settleDown,
  spawnSink,
} from './outbox-support.ts';
import { openGround, timed, until } from './support.ts';

/**
 * Whether a million orders that wait slow down those that need not: the drain of some orders by the settings as they
 * come, alone (in a database of its own) and beside the million, in turn. Of several rounds the middle one counts;
 * each line is to show at least 0.8.
 *   dead head     the million waits behind a dead order of its ordering key; the others have keys of their own and the
 *                 same destination. Taking the million out of the claim's sight is done once, and timed apart.
 *   open circuit  the million is for another destination, which does not answer
 *   not yet due   the million is due in an hour, for the same destination; a transaction elsewhere stays open, so
 *                 that nothing that is dead can be cleaned up
 *   due           the million is due, and the drained ones are its first; beside such a transaction
 *   sent          the last of that million, after all others were sent beside the same transaction
 * node bench/outbox-backlog.ts [orders] [waiting] [rounds]
 */
const count = Number(process.argv[2] ?? 20_000);
const waiting = Number(process.argv[3] ?? 1_000_000);
const rounds = Number(process.argv[4] ?? 3);
const name = 'bench';
const keys = 1000;

type Destinations = Parameters<typeof deliveryEnv>[0];

type Place = Readonly<{ url: string; db: Database }>;

/** How orders that are drained are added; where they wait already, only where they are alone. */
type Adding = Readonly<{ keyed?: boolean; waitAlready?: boolean; destinations?: Destinations }>;

const ground = await openGround();
const sink = await spawnSink();
const beside: Place = ground;
const alone = await openSecondDatabase();
const toSink: Destinations = { [name]: httpDestination(sink.url) };
try {
  process.stdout.write(
    `\nDrain of ${count.toLocaleString('en')} orders beside ${waiting.toLocaleString('en')} that wait (Node ${process.version}, ${cpus().length} cores)\n`,
  );
  await compareDeadHead();
  await compareOpenCircuit();
  await compareNotYetDue();
  await compareDueAndSent();
} finally {
  await alone.db.end();
  await sink.stop();
  await ground.stop();
}

async function compareDeadHead(): Promise<void> {
  await fill({ prefix: 'held', orderingKeys: 1 });
  await beside.db.query(sql`
    UPDATE outbox.outbox_orders SET status = 'dead', last_error = 'BAD_REQUEST: HTTP 400'
    WHERE idempotency_key = 'held-00000000'`);
  await settleDown(beside.db);
  const seconds = await timed(holdAllBack);
  await compare('behind a dead head, others with keys', { keyed: true });
  process.stdout.write(`    holding them back behind it, once: ${seconds.toFixed(1)} s\n`);
}

async function compareOpenCircuit(): Promise<void> {
  const down = { ...httpDestination(await closedPort()), timeout_ms: 1000 };
  const destinations = { ...toSink, down };
  await fill({ prefix: 'down', destination: 'down' });
  await openTheCircuit(destinations);
  await compare('behind the open circuit of another', { destinations });
}

async function compareNotYetDue(): Promise<void> {
  await fill({ prefix: 'later', dueInSeconds: 3600 });
  await besideOpenTransaction(() => compare('not yet due, and an open transaction', {}));
}

async function compareDueAndSent(): Promise<void> {
  await fill({ prefix: 'due', count: waiting + (2 * rounds + 1) * count });
  await besideOpenTransaction(async () => {
    await compare('due, and an open transaction', { waitAlready: true });
    // More than are needed, because a drain that is stopped has sent some more.
    await passOverAllBut((rounds + 1) * count);
    await compare('sent, and the same open transaction', { waitAlready: true });
  });
}

async function compare(
  title: string,
  { keyed = false, waitAlready = false, ...more }: Adding,
): Promise<void> {
  const runs: Readonly<{ clean: number; loaded: number }>[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const adding = {
      count,
      destination: name,
      prefix: `r${round}`,
      ...(keyed ? { orderingKeys: keys } : {}),
    };
    await emptyOutbox(alone.db);
    await fillOrders(alone.db, adding);
    if (!waitAlready) await fillOrders(beside.db, adding);
    await settleDown(alone.db);
    await settleDown(beside.db);
    runs.push({ clean: await drainAt(alone), loaded: await drainAt(beside, more.destinations) });
  }
  const [clean, loaded] = [middle(runs.map((run) => run.clean)), middle(runs.map((run) => run.loaded))];
  const perSecond = (n: number): string => `${Math.round(n).toLocaleString('en').padStart(7)} /s`;
  process.stdout.write(
    `  ${title.padEnd(40)} alone ${perSecond(clean)}   beside ${perSecond(loaded)}   ${(loaded / clean).toFixed(2)} of alone\n`,
  );
}

/** Until so many have arrived. */
function drainAt({ url }: Place, destinations: Destinations = toSink): Promise<number> {
  const env = { ...deliveryEnv(destinations), DATABASE_URL: url };
  return drain(ground, { env, orders: count, received: sink.received, untilSettled: false });
}

async function fill(
  how: Partial<Parameters<typeof fillOrders>[1]> & Readonly<{ prefix: string }>,
): Promise<void> {
  await emptyOutbox(beside.db);
  await fillOrders(beside.db, { count: waiting, destination: name, ...how });
}

async function holdAllBack(): Promise<void> {
  const system = await ground.startSystem(deliveryEnv(toSink));
  const isDone = async (): Promise<boolean> => {
    await wait(500);
    const [row] = await beside.db.query<{ is_any: boolean }>(sql`
      SELECT EXISTS (
        SELECT 1 FROM outbox.outbox_orders
        WHERE destination = ${name} AND ordering_key IS NOT NULL AND NOT held AND status IN ('queued', 'failed')
      ) AS is_any`);
    return row?.is_any === false;
  };
  await until(isDone, 1_800_000);
  await system.stop();
}

async function openTheCircuit(destinations: Destinations): Promise<void> {
  const system = await ground.startSystem(deliveryEnv(destinations));
  await until(async () => {
    const rows = await beside.db.query(sql`
      SELECT 1 FROM outbox.destination_state WHERE destination = 'down' AND opened_at IS NOT NULL`);
    return rows.length > 0;
  });
  await system.stop();
}

async function closedPort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${port}/orders`;
}

/** Its snapshot is older than everything that is measured, so no dead row can be removed while it lasts. */
async function besideOpenTransaction(work: () => Promise<void>): Promise<void> {
  const client = new Client({ connectionString: beside.url });
  await client.connect();
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await client.query('SELECT count(*) FROM platform.replicas');
  try {
    await work();
  } finally {
    await client.end();
  }
}

/** All but the last ones that wait get the old versions that sending them would leave behind. */
async function passOverAllBut(last: number): Promise<void> {
  const { db } = beside;
  const [row] = await db.query<{ waiting: number }>(
    sql`SELECT count(*)::int AS waiting FROM outbox.outbox_orders WHERE status = 'queued'`,
  );
  const atOnce = 50_000;
  for (let left = (row?.waiting ?? 0) - last; left > 0; left -= atOnce) {
    await db.query(sql`
      UPDATE outbox.outbox_orders SET status = 'sending' WHERE id IN (
        SELECT id FROM outbox.outbox_orders WHERE status = 'queued' ORDER BY id LIMIT ${Math.min(atOnce, left)})`);
    await db.query(sql`UPDATE outbox.outbox_orders SET status = 'sent' WHERE status = 'sending'`);
  }
}

async function openSecondDatabase(): Promise<Place> {
  await ground.db.query(sql`CREATE DATABASE bench_alone`);
  const url = new URL(ground.url);
  url.pathname = '/bench_alone';
  const db = connectTo(url.href);
  await migrateUp(db, migrationSources);
  return { url: url.href, db };
}
