import { tmpdir } from 'node:os';
import { loadConfig } from '../src/config/config.ts';
import { systemClock } from '../src/kernel/clock.ts';
import { openDestination } from '../src/outbox/deliver/senders/open-destination.ts';
import { claimOrders, type ClaimPosition, type ClaimResult } from '../src/outbox/deliver/claim-orders.ts';
import type { OpenDestination, OutgoingOrder } from '../src/outbox/deliver/senders/port.ts';
import { settleOrders, type EndedAttempt } from '../src/outbox/deliver/settle-orders.ts';
import { connectTo } from '../tests/support/database.ts';
import { measurePeer, peerSettings } from './outbox-peer.ts';
import {
  defaultPace,
  deliveryEnv,
  drain,
  emptyOutbox,
  fillOrders,
  httpDestination,
  middle,
  paceName,
  settleDown,
  spawnSink,
  type Pace,
  type Sink,
} from './outbox-support.ts';
import { openGround, printTable, timed, type Ground, type Line } from './support.ts';

/**
 * How fast a backlog of orders leaves, over HTTP and to Kafka, with the settings as they come and with larger claims.
 *   F      the database alone: the same claims and settles with ledger and audit, as many under way, and no sender
 *          between them
 *   S      the sender alone: the same sender to the same sink with as many under way, and no database
 *   floor  one after the other: 1/(1/F + 1/S)
 *   ours   the whole system: claim, send, settle; at least 0.8 of the floor
 *   peer   pg-transactional-outbox over HTTP; ours at least 10 times as it comes, 3 times at its best
 * Of several rounds, in turn, the middle one of each counts.
 * node bench/outbox-drain.ts [orders] [rounds]
 */
const count = Number(process.argv[2] ?? 100_000);
const rounds = Number(process.argv[3] ?? 1);
const topic = 'bench.orders.v1';
const partitions = 4;
const name = 'bench';

type Way = Readonly<{
  title: string;
  /** A pace that suits it better than the one that comes by default. */
  tuned: Pace;
  destination: Readonly<Record<string, unknown>>;
  /** How many orders the sender is handed at once when it is measured alone. */
  perSend: (pace: Pace) => number;
  received: () => Promise<number>;
}>;

const ground = await openGround(peerSettings);
const sink = await spawnSink();
try {
  await ground.broker.createTopic(topic, partitions);
  const overHttp: Way = {
    title: 'to an HTTP sink',
    tuned: { batchSize: 250, parallelism: 4, maxInFlight: 500 },
    destination: httpDestination(sink.url),
    perSend: () => 1,
    received: sink.received,
  };
  const toKafka: Way = {
    title: 'to Kafka',
    tuned: { batchSize: 250, parallelism: 4, maxInFlight: 1000 },
    destination: { type: 'kafka', topic },
    perSend: ({ batchSize }) => batchSize,
    received: () => countRecords(ground),
  };
  const peers = await measurePeers(ground, sink);
  for (const pace of [defaultPace, overHttp.tuned]) await compare(overHttp, pace, peers);
  for (const pace of [defaultPace, toKafka.tuned]) await compare(toKafka, pace, []);
} finally {
  await sink.stop();
  await ground.stop();
}

async function compare(way: Way, pace: Pace, peers: readonly Line[]): Promise<void> {
  const runs: Readonly<{ F: number; S: number; ours: number }>[] = [];
  for (let round = 0; round < rounds; round += 1)
    runs.push({
      F: await measureStore(pace),
      S: await measureSender(way, pace),
      ours: await measureOurs(way, pace),
    });
  const [F, S, ours] = [
    middle(runs.map((run) => run.F)),
    middle(runs.map((run) => run.S)),
    middle(runs.map((run) => run.ours)),
  ];
  const floor = 1 / (1 / F + 1 / S);
  printTable(`Drain of ${count.toLocaleString('en')} orders ${way.title} with ${paceName(pace)}`, [
    { name: 'floor: F and S one after the other', perSecond: floor },
    { name: 'F: claim and settle, no sender', perSecond: F },
    { name: 'S: the sender, no database', perSecond: S },
    { name: 'ours', perSecond: ours },
    ...peers,
  ]);
  for (const peer of peers)
    process.stdout.write(`  ours against ${peer.name}: ${(ours / peer.perSecond).toFixed(1)} times\n`);
}

async function measureStore({ batchSize, parallelism, maxInFlight }: Pace): Promise<number> {
  await fill();
  const atOnce = Math.min(parallelism, Math.floor(maxInFlight / batchSize));
  const db = connectTo(ground.url, atOnce);
  const deps = {
    ...configOf(httpDestination(sink.url), defaultPace),
    db,
    worker: { db, clock: systemClock, owner: 'bench', onStale: failOnStale },
    onSettleRetry: () => {},
  };
  const options = {
    destination: name,
    kind: 'unordered',
    limit: batchSize,
    bytes: 8_388_608,
    retryMax: 8,
  } as const;
  const seconds = await timed(() =>
    Promise.all(
      Array.from({ length: atOnce }, async () => {
        for (let after: ClaimPosition | null = null; ;) {
          const { orders, last }: ClaimResult = await claimOrders(deps, { ...options, after });
          if (orders.length > 0) await settleOrders(deps, orders.map(asSent), AbortSignal.timeout(60_000));
          else if (after === null) return;
          after = orders.length === batchSize ? last : null;
        }
      }),
    ),
  );
  await db.end();
  return count / seconds;
}

function asSent(order: EndedAttempt['order']): EndedAttempt {
  const answer = { status: 200, digest: `sha256:${'0'.repeat(64)}`, outsideId: 'sink-1' };
  return { order, settlement: { to: 'sent', answer, isConflict: false } };
}

function failOnStale(): void {
  throw new Error('somebody else took the orders of the bench');
}

async function measureSender(way: Way, pace: Pace): Promise<number> {
  const destination = destinationOf(way, pace);
  const { signal } = new AbortController();
  const perSend = way.perSend(pace);
  let next = 0;
  const seconds = await timed(() =>
    Promise.all(
      Array.from({ length: Math.floor(pace.maxInFlight / perSend) }, async () => {
        for (let at = next; at < count; at = next) {
          next += perSend;
          const orders = Array.from({ length: Math.min(perSend, count - at) }, (_, i) => orderOf(at + i));
          const outcomes = await Promise.all(destination.send(orders, signal));
          const bad = outcomes.find(({ end }) => end !== 'sent');
          if (bad !== undefined) throw new Error(`not sent: ${JSON.stringify(bad)}`);
        }
      }),
    ),
  );
  await destination.close();
  return count / seconds;
}

function orderOf(i: number): OutgoingOrder {
  return {
    id: BigInt(i),
    idempotencyKey: `alone-${i}`,
    request: `{"qty": ${i}, "meta": {"note": "${'x'.repeat(100)}", "strategy": "bench"}, "intent": "BUY", "symbol": "USDJPY", "limit_price": 150.25}`,
    orderingKey: null,
    traceId: null,
    traceparent: null,
  };
}

async function measureOurs(way: Way, pace: Pace): Promise<number> {
  await fill();
  const env = deliveryEnv({ [name]: way.destination }, pace);
  return drain(ground, { env, orders: count, received: way.received, untilSettled: true });
}

async function fill(): Promise<void> {
  await emptyOutbox(ground.db);
  await fillOrders(ground.db, { count, destination: name, prefix: 'order' });
  await settleDown(ground.db);
}

/** Both listeners of the peer, each as it comes and with as many at once as one of our claims has. */
async function measurePeers({ url }: Ground, to: Sink): Promise<readonly Line[]> {
  const lines: Line[] = [];
  for (const [name, setting] of [
    ['pg-transactional-outbox, polling', { listener: 'polling', messages: 1000 }],
    ['pg-transactional-outbox, polling, 32 at once', { listener: 'polling', atOnce: 32, messages: 2000 }],
    ['pg-transactional-outbox, replication', { listener: 'replication', messages: 2000 }],
    [
      'pg-transactional-outbox, replication, 32 at once',
      { listener: 'replication', atOnce: 32, messages: 5000 },
    ],
  ] as const)
    lines.push({ name, perSecond: await measurePeer(url, to, setting) });
  return lines;
}

function destinationOf(way: Way, pace: Pace): OpenDestination {
  const { destinations, retryMax, backoff } = configOf(way.destination, pace);
  const [settings] = destinations;
  if (settings === undefined) throw new Error('the bench has no destination');
  return openDestination(settings, { broker: ground.broker, retryMax, backoff });
}

function configOf(destination: Way['destination'], pace: Pace): ReturnType<typeof loadConfig>['outbox'] {
  const env = { DATABASE_URL: ground.url, ...deliveryEnv({ [name]: destination }, pace) };
  return loadConfig({ env, secretsDir: tmpdir() }).outbox;
}

async function countRecords({ broker }: Ground): Promise<number> {
  const listing = await broker.partitions((each) => each === topic);
  return listing.partitions.reduce((sum, { end }) => sum + Number(end), 0);
}
