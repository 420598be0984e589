import { randomUUID } from 'node:crypto';
import { cpus } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { Client } from 'pg';
import { Pool } from 'undici';
import { outbox } from '../src/sdk/outbox.ts';
import { peerSettings, startPeer } from './outbox-peer.ts';
import { deliveryEnv, httpDestination, settleDown, spawnSink, type Sink } from './outbox-support.ts';
import { openGround, until, type Ground } from './support.ts';

/**
 * How long a single order takes from its COMMIT to the sink while nothing else is to do, by the settings as they come.
 *   floor  what no outbox can do without: a NOTIFY, and an HTTP call by whoever hears of it
 *   ours   the SDK's `outbox.add` in a transaction; p50 under 10 ms, p99 under 50 ms
 *   peer   pg-transactional-outbox with the listener that reads the write-ahead log, which its document names for a
 *          short lag; the other one polls
 * The time of the COMMIT itself, with its write to disk, is part of all three.
 * node bench/outbox-latency.ts [orders]
 */
const count = Number(process.argv[2] ?? 400);
const warmUps = 20;
const usual = { orders: count, pauseMs: 50 } as const;

/** Begins the transaction of one order, and returns what commits it. */
type Preparing = (key: string) => Promise<() => Promise<unknown>>;

const ground = await openGround(peerSettings);
const sink = await spawnSink({ keepsArrivals: true });
try {
  await settleDown(ground.db);
  const floor = await measureFloor(ground, sink);
  const ours = await measureOurs(ground, sink);
  process.stdout.write(
    `\nFrom the COMMIT to the sink, ${count} single orders (Node ${process.version}, ${cpus().length} cores)\n`,
  );
  print('floor: NOTIFY and an HTTP call', floor, floor);
  print('ours', ours, floor);
  try {
    print('pg-transactional-outbox, replication', await measurePeerLatency(ground, sink), floor);
  } catch (error) {
    // Its log reader sometimes delivers a message only after the next one was committed.
    process.stdout.write(`  pg-transactional-outbox, replication: not measured, ${String(error)}\n`);
  }
  process.stdout.write('  goals: p50 under 10 ms, p99 under 50 ms\n');
} finally {
  await sink.stop();
  await ground.stop();
}

async function measureFloor({ url }: Ground, to: Sink): Promise<readonly number[]> {
  const http = new Pool(new URL(to.url).origin, { connections: 1 });
  const listener = new Client({ connectionString: url });
  const service = new Client({ connectionString: url });
  await Promise.all([listener.connect(), service.connect()]);
  listener.on('notification', ({ payload }) => void post(http, payload ?? ''));
  await listener.query('LISTEN bench');
  const times = await measure(to, usual, async (key) => {
    await service.query('BEGIN');
    await service.query(`SELECT pg_notify('bench', $1)`, [key]);
    return () => service.query('COMMIT');
  });
  await Promise.all([listener.end(), service.end(), http.close()]);
  return times;
}

async function post(http: Pool, key: string): Promise<void> {
  const answer = await http.request({
    method: 'POST',
    path: '/orders',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify(requestOf(key)),
  });
  await answer.body.json();
}

async function measureOurs({ url, startSystem }: Ground, to: Sink): Promise<readonly number[]> {
  const service = new Client({ connectionString: url });
  await service.connect();
  const system = await startSystem(deliveryEnv({ bench: httpDestination(to.url) }));
  try {
    return await measure(to, usual, async (key) => {
      await service.query('BEGIN');
      const request = requestOf(key);
      const { outcome } = await outbox.add(service, { destination: 'bench', idempotencyKey: key, request });
      if (outcome !== 'created') throw new Error(`the order is ${outcome}`);
      return () => service.query('COMMIT');
    });
  } finally {
    await system.stop();
    await service.end();
  }
}

async function measurePeerLatency({ url }: Ground, to: Sink): Promise<readonly number[]> {
  const peer = await startPeer(url, to, { listener: 'replication' });
  try {
    return await measure(to, usual, async (key) => {
      await peer.client.query('BEGIN');
      await peer.add([key]);
      return () => peer.client.query('COMMIT');
    });
  } finally {
    await peer.stop();
  }
}

/** One after another, each when the one before it has arrived and a moment has passed. Milliseconds, ascending. */
async function measure(
  to: Sink,
  { orders, pauseMs }: Readonly<{ orders: number; pauseMs: number }>,
  prepare: Preparing,
): Promise<readonly number[]> {
  const committed = new Map<string, bigint>();
  for (let i = 0; i < orders + warmUps; i += 1) {
    const key = randomUUID();
    const expected = (await to.received()) + 1;
    const commit = await prepare(key);
    if (i >= warmUps) committed.set(key, process.hrtime.bigint());
    await commit();
    await until(async () => (await to.received()) >= expected, 30_000);
    await wait(20 + Math.random() * pauseMs);
  }
  const arrivals = await to.arrivals();
  const times = [...committed].map(([key, at]) => Number((arrivals.get(key) ?? at) - at) / 1e6);
  return times.toSorted((a, b) => a - b);
}

function requestOf(key: string): Readonly<Record<string, unknown>> {
  return { symbol: 'USDJPY', intent: 'BUY', qty: 10_000, limit_price: 150.25, meta: { key } };
}

function print(name: string, times: readonly number[], floor: readonly number[]): void {
  const at = (share: number, of = times): number => of[Math.floor((of.length - 1) * share)] ?? 0;
  const ms = (share: number): string => `${at(share).toFixed(1).padStart(7)} ms`;
  process.stdout.write(
    `  ${name.padEnd(44)} p50 ${ms(0.5)}   p99 ${ms(0.99)}   ${(at(0.5) / at(0.5, floor)).toFixed(1)} times the floor's p50\n`,
  );
}
