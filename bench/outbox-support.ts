import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Database } from '../src/platform/postgres/database.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import { timed, until, type Ground } from './support.ts';

/** What the benches of the outbox share: a sink for HTTP, orders in the tables, and the drain of our own system. */
export type Sink = Readonly<{
  url: string;
  received(): Promise<number>;
  /** When each key came, by `process.hrtime.bigint()`; empty unless the sink keeps them. */
  arrivals(): Promise<ReadonlyMap<string, bigint>>;
  stop(): Promise<void>;
}>;

export async function spawnSink(options: Readonly<{ keepsArrivals?: boolean }> = {}): Promise<Sink> {
  const child = fork(
    fileURLToPath(new URL('outbox-sink.ts', import.meta.url)),
    options.keepsArrivals === true ? ['keep'] : [],
    { serialization: 'advanced', execArgv: [] },
  );
  const { port } = await hear<{ port: number }>(child);
  const ask = async <Answer>(what: 'received' | 'arrivals'): Promise<Answer> => {
    const heard = hear<Answer>(child);
    child.send(what);
    return heard;
  };
  return {
    url: `http://127.0.0.1:${port}/orders`,
    received: () => ask('received'),
    arrivals: () => ask('arrivals'),
    async stop() {
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}

async function hear<Message>(child: ChildProcess): Promise<Message> {
  const [message] = (await once(child, 'message')) as [Message];
  return message;
}

export type Pace = Readonly<{ batchSize: number; parallelism: number; maxInFlight: number }>;

/** As a fresh installation comes: `max_in_flight` follows from the other two. */
export const defaultPace: Pace = { batchSize: 32, parallelism: 4, maxInFlight: 128 };

export function paceName({ batchSize, parallelism, maxInFlight }: Pace): string {
  return `batch_size ${batchSize}, parallelism ${parallelism}, max_in_flight ${maxInFlight}`;
}

/** The environment of a process that only delivers, at this pace. */
export function deliveryEnv(
  destinations: Readonly<Record<string, Readonly<Record<string, unknown>>>>,
  { batchSize, parallelism, maxInFlight }: Pace = defaultPace,
): Readonly<Record<string, string>> {
  const paced = Object.entries(destinations).map(([name, destination]) => [
    name,
    { max_in_flight: maxInFlight, ...destination },
  ]);
  return {
    ROLES: 'workers',
    OUTBOX_BATCH_SIZE: String(batchSize),
    OUTBOX_PARALLELISM: String(parallelism),
    OUTBOX_DESTINATIONS: JSON.stringify(Object.fromEntries(paced)),
  };
}

/** A partner that honours keys, so that connections are used again. */
export function httpDestination(url: string): Readonly<Record<string, unknown>> {
  return { type: 'http', url, idempotency: 'enforced' };
}

export type Filling = Readonly<{
  count: number;
  destination: string;
  /** Keys are `<prefix>-<number>`. */
  prefix: string;
  /** Spread over so many ordering keys, named after the prefix; none by default. */
  orderingKeys?: number;
  dueInSeconds?: number;
}>;

const perStatement = 50_000;

/** Orders as `insert_order` writes them, with ledger and audit, but by the ten thousands. */
export async function fillOrders(db: Database, filling: Filling): Promise<void> {
  const { count, destination, prefix, orderingKeys = null, dueInSeconds = 0 } = filling;
  for (let from = 0; from < count; from += perStatement) {
    const to = Math.min(count, from + perStatement) - 1;
    await db.query(sql`
      WITH added AS (
        INSERT INTO outbox.outbox_orders
          (idempotency_key, request_json, request_digest, status, next_attempt_at, destination, ordering_key, ordering_seq)
        SELECT ${prefix} || '-' || lpad(i::text, 8, '0'),
               jsonb_build_object(
                 'symbol', 'USDJPY', 'intent', 'BUY', 'qty', i, 'limit_price', 150.25,
                 'meta', jsonb_build_object('strategy', 'bench', 'note', repeat('x', 100))),
               'sha256:' || encode(sha256(i::text::bytea), 'hex'), 'queued',
               clock_timestamp() + ${dueInSeconds}::int * interval '1 second', ${destination},
               ${prefix}::text || '-' || (i % ${orderingKeys}::int),
               CASE WHEN ${orderingKeys}::int IS NOT NULL THEN nextval('outbox.ordering_seqs') END
        FROM generate_series(${from}::int, ${to}::int) AS i
        RETURNING id, idempotency_key, request_digest
      ), entered AS (
        INSERT INTO outbox.idempo_ledger (idempotency_key, request_digest, outbox_id, http_status, response_payload)
        SELECT idempotency_key, request_digest, id, 201,
               json_build_object('id', id, 'idempotency_key', idempotency_key, 'status', 'queued')
        FROM added
      )
      INSERT INTO outbox.outbox_audit (outbox_id, status_to, retry_count, idempotency_key, actor)
      SELECT id, 'queued', 0, idempotency_key, 'bench' FROM added`);
  }
}

/** As it is some time after a load: the planner knows the tables, and nothing is left to write. */
export async function settleDown(db: Database): Promise<void> {
  for (const table of [sql`outbox_orders`, sql`idempo_ledger`, sql`outbox_audit`])
    await db.query(sql`VACUUM ANALYZE outbox.${table}`);
  await db.query(sql`CHECKPOINT`);
}

/** The audit refuses to be emptied, so its triggers are set aside for the moment. */
export async function emptyOutbox(db: Database): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query(sql`SET LOCAL session_replication_role = replica`);
    await tx.query(
      sql`TRUNCATE outbox.outbox_orders, outbox.idempo_ledger, outbox.outbox_audit, outbox.destination_state`,
    );
  });
}

export type Drain = Readonly<{
  env: Readonly<Record<string, string>>;
  /** How many there are, or how many of them are waited for. */
  orders: number;
  /** How many have reached their destination. */
  received: () => Promise<number>;
  /** Also until they are written down as sent; not where more wait than are waited for. */
  untilSettled: boolean;
}>;

/** Orders per second of the whole system, from the first that arrives on: starting it is not the question. */
export async function drain(ground: Ground, { env, orders, received, untilSettled }: Drain): Promise<number> {
  const before = await received();
  const arrived = async (): Promise<number> => (await received()) - before;
  const system = await ground.startSystem(env);
  try {
    await until(async () => (await arrived()) > 0);
    const already = await arrived();
    const seconds = await timed(async () => {
      await until(async () => (await arrived()) >= orders);
      if (untilSettled) await until(async () => !(await isAnyOpen(ground.db)));
    });
    return (orders - already) / seconds;
  } finally {
    await system.stop();
  }
}

async function isAnyOpen(db: Database): Promise<boolean> {
  const [row] = await db.query<{ is_open: boolean }>(sql`
    SELECT EXISTS (SELECT 1 FROM outbox.outbox_orders WHERE status = 'sending')
        OR EXISTS (SELECT 1 FROM outbox.outbox_orders WHERE status = 'queued')
        OR EXISTS (SELECT 1 FROM outbox.outbox_orders WHERE status = 'failed') AS is_open`);
  return row?.is_open ?? false;
}

/** Of several runs the one in the middle: machines have their moments. */
export function middle(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;
}
