import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { Client } from 'pg';
import { sql } from '../src/platform/postgres/sql.ts';
import {
  deliveryEnv,
  drain,
  emptyOutbox,
  fillOrders,
  httpDestination,
  settleDown,
  spawnSink,
} from './outbox-support.ts';
import { openGround, printTable, timed, until } from './support.ts';

/**
 * Whether a million orders that wait slow down those that need not: the drain of some orders by the settings as they
 * come, alone and beside the million. Each is to keep at least 0.8 of its clean run.
 *   dead head     the million waits behind a dead order of its ordering key; the others have keys of their own and the
 *                 same destination. Taking the million out of the claim's sight is done once, and timed apart.
 *   open circuit  the million is for another destination, which does not answer
 *   snapshot      the million is due, for the same destination and in front of everything; the drained ones are its
 *                 first. A transaction elsewhere stays open, so that nothing that is dead can be cleaned up.
 *   sent          the same after that million was sent meanwhile: the transaction keeps all its old rows alive
 *   not yet due   the million is due in an hour, for the same destination, beside such a transaction
 * node bench/outbox-backlog.ts [orders] [waiting]
 */
const count = Number(process.argv[2] ?? 50_000);
const waiting = Number(process.argv[3] ?? 1_000_000);
const name = 'bench';
const keys = 1000;

const ground = await openGround();
const { db } = ground;
const sink = await spawnSink();
const toSink = { [name]: httpDestination(sink.url) };
try {
  const clean = await afterFilling(
    () => addFree(),
    () => drainAll(),
  );
  const cleanKeyed = await afterFilling(
    () => addKeyed(),
    () => drainAll(),
  );
  const marked = { seconds: 0 };
  const deadHead = await afterFilling(
    async () => {
      await addBehindDeadHead();
      marked.seconds = await timed(holdAllBack);
      await addKeyed();
    },
    () => drainAll(),
  );
  const downUrl = await closedPort();
  const beside = { ...toSink, down: { ...httpDestination(downUrl), timeout_ms: 1000 } };
  const openCircuit = await afterFilling(
    async () => {
      await fillOrders(db, { count: waiting, destination: 'down', prefix: 'down' });
      await openTheCircuit(beside);
      await addFree();
    },
    () => drainAll(beside),
  );
  const sentMeanwhile = { perSecond: 0 };
  const snapshot = await afterFilling(
    () => fillOrders(db, { count: 2 * count + waiting, destination: name, prefix: 'due' }),
    () =>
      besideOpenTransaction(async () => {
        const perSecond = await drainAll();
        await passOver(waiting);
        sentMeanwhile.perSecond = await drainAll();
        return perSecond;
      }),
  );
  const notYetDue = await afterFilling(
    async () => {
      await fillOrders(db, { count: waiting, destination: name, prefix: 'later', dueInSeconds: 3600 });
      await addFree();
    },
    () => besideOpenTransaction(() => drainAll()),
  );
  const many = waiting.toLocaleString('en');
  printTable(`Drain of ${count.toLocaleString('en')} orders beside ${many} that wait`, [
    { name: 'floor: alone', perSecond: clean },
    { name: 'another destination has an open circuit', perSecond: openCircuit },
    { name: 'all are due, beside an open transaction', perSecond: snapshot },
    { name: 'all were sent, beside the same transaction', perSecond: sentMeanwhile.perSecond },
    { name: 'not yet due, beside an open transaction', perSecond: notYetDue },
  ]);
  printTable(`The same with ${keys.toLocaleString('en')} ordering keys`, [
    { name: 'floor: alone', perSecond: cleanKeyed },
    { name: 'another key has a dead head', perSecond: deadHead },
  ]);
  process.stdout.write(
    `  holding ${many} back behind their dead head, once: ${marked.seconds.toFixed(1)} s\n`,
  );
} finally {
  await sink.stop();
  await ground.stop();
}

async function afterFilling(fill: () => Promise<unknown>, measure: () => Promise<number>): Promise<number> {
  await emptyOutbox(db);
  await fill();
  await settleDown(db);
  return measure();
}

function addFree(): Promise<void> {
  return fillOrders(db, { count, destination: name, prefix: 'free' });
}

function addKeyed(): Promise<void> {
  return fillOrders(db, { count, destination: name, prefix: 'keyed', orderingKeys: keys });
}

/** The first of one ordering key is dead, and nobody has decided about it. */
async function addBehindDeadHead(): Promise<void> {
  await fillOrders(db, { count: waiting + 1, destination: name, prefix: 'held', orderingKeys: 1 });
  await db.query(sql`
    UPDATE outbox.outbox_orders SET status = 'dead', last_error = 'BAD_REQUEST: HTTP 400'
    WHERE idempotency_key = 'held-00000000'`);
  await settleDown(db);
}

async function holdAllBack(): Promise<void> {
  const system = await ground.startSystem(deliveryEnv(toSink));
  const isDone = async (): Promise<boolean> => {
    await wait(500);
    const [row] = await db.query<{ is_any: boolean }>(sql`
      SELECT EXISTS (
        SELECT 1 FROM outbox.outbox_orders
        WHERE destination = ${name} AND ordering_key IS NOT NULL AND NOT held AND status IN ('queued', 'failed')
      ) AS is_any`);
    return row?.is_any === false;
  };
  await until(isDone, 1_800_000);
  await system.stop();
}

async function openTheCircuit(destinations: Parameters<typeof deliveryEnv>[0]): Promise<void> {
  const system = await ground.startSystem(deliveryEnv(destinations));
  await until(async () => {
    const rows = await db.query(sql`
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
async function besideOpenTransaction<T>(work: () => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: ground.url });
  await client.connect();
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await client.query('SELECT count(*) FROM platform.replicas');
  try {
    return await work();
  } finally {
    await client.end();
  }
}

/** The next ones that wait get the old versions that sending them would leave behind. */
async function passOver(orders: number): Promise<void> {
  const atOnce = 50_000;
  for (let done = 0; done < orders; done += atOnce) {
    await db.query(sql`
      UPDATE outbox.outbox_orders SET status = 'sending' WHERE id IN (
        SELECT id FROM outbox.outbox_orders WHERE destination = ${name} AND status = 'queued'
        ORDER BY id LIMIT ${Math.min(atOnce, orders - done)})`);
    await db.query(sql`UPDATE outbox.outbox_orders SET status = 'sent' WHERE status = 'sending'`);
  }
  await settleDown(db);
}

/** Until so many have arrived. */
function drainAll(destinations: Parameters<typeof deliveryEnv>[0] = toSink): Promise<number> {
  const env = deliveryEnv(destinations);
  return drain(ground, { env, orders: count, received: sink.received, untilSettled: false });
}
