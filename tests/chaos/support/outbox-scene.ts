import assert from 'node:assert/strict';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { createTestDatabase } from '../../support/database.ts';
import { startPartner, type Effect, type Partner, type PartnerOptions } from '../../support/partner.ts';
import type { FaultPlan } from './faults.ts';
import { findBreaches } from './order-breaches.ts';
import { startReplica, type Replica } from './start-replica.ts';
import { until } from './until.ts';

export type OrderStatus = 'queued' | 'sending' | 'sent' | 'failed' | 'dead';

export type OrderRow = Readonly<{
  id: bigint;
  key: string;
  status: OrderStatus;
  retryCount: number;
  lastError: string | null;
  inDoubt: boolean;
  owner: string | null;
  epoch: bigint;
  ledger: string;
}>;

export type NewOrder = Readonly<{ key: string; destination?: string; orderingKey?: string }>;

/** The partner that orders are sent to, in this process or in its own. */
export type Outside = Readonly<{
  url: string;
  statusUrl: string;
  effects(): Promise<readonly Effect[]>;
  /** The number of requests per key, if the partner counts them. */
  requests?(): ReadonlyMap<string, number>;
}>;

/** A partner, a database, and the replicas that send orders from the database to the partner. */
export type OutboxScene = Readonly<{
  db: Database;
  start(plan?: FaultPlan, env?: Readonly<Record<string, string>>): Promise<Replica>;
  /** Adds orders in SQL in one transaction, and remembers them for `check`. */
  place(orders: readonly (string | NewOrder)[]): Promise<void>;
  rows(status?: OrderStatus): Promise<readonly OrderRow[]>;
  /** The row of the only order. */
  row(): Promise<OrderRow>;
  /** Resolves with the row when the only order has this status. */
  becomes(status: OrderStatus): Promise<OrderRow>;
  count(status?: OrderStatus): Promise<number>;
  /** Resolves when every order is sent or dead. */
  atRest(withinMs?: number): Promise<void>;
  /** Fails with all violated invariants; see `findBreaches`. */
  check(): Promise<readonly OrderRow[]>;
  close(): Promise<void>;
}>;

export type DestinationKeys = Readonly<Record<string, unknown>>;

export type OutboxSceneOptions = Readonly<{
  /** Settings of the destination `broker`, besides type and url. */
  broker?: DestinationKeys | ((outside: Outside) => DestinationKeys);
  /** More destinations. */
  destinations?: (outside: Outside) => Readonly<Record<string, DestinationKeys>>;
  env?: Readonly<Record<string, string>>;
  /** The database of a server that the test has started itself. */
  database?: Readonly<{ url: string; db: Database }>;
}>;

/** The lease of three seconds is longer than a send with a status question after it. */
export const timeoutMs = 1400;
export const outboxEnv = {
  KAFKA_ENABLED: 'false',
  OUTBOX_STUCK_THRESHOLD_MIN: '0.05',
  OUTBOX_BACKOFF_INITIAL_MS: '20',
  OUTBOX_BACKOFF_MAX_MS: '100',
  OUTBOX_IDLE_SLEEP_MS: '20',
  OUTBOX_PROBE_INITIAL_MS: '20',
  OUTBOX_PROBE_MAX_MS: '100',
} as const;
const defaultRetryMax = 8;

/** With a partner in this process. */
export async function openOutboxScene({
  partner: partnerOptions,
  ...options
}: OutboxSceneOptions & Readonly<{ partner?: PartnerOptions }> = {}): Promise<
  OutboxScene & Readonly<{ partner: Partner }>
> {
  const partner = await startPartner(partnerOptions);
  const scene = await openOutboxSceneAt(outsideOf(partner), options);
  return {
    ...scene,
    partner,
    async close() {
      await scene.close();
      await partner.stop();
    },
  };
}

function outsideOf(partner: Partner): Outside {
  return {
    url: partner.url,
    statusUrl: partner.statusUrl,
    effects: async () => partner.ledger.entries(),
    requests: () =>
      new Map([...Map.groupBy(partner.requests, ({ key }) => key)].map(([key, seen]) => [key, seen.length])),
  };
}

export async function openOutboxSceneAt(
  outside: Outside,
  { broker, destinations, env = {}, database }: OutboxSceneOptions = {},
): Promise<OutboxScene> {
  const own = database === undefined ? await createTestDatabase() : null;
  const { url, db } = database ?? own ?? assert.fail();
  const ways = {
    broker: honest(outside.url, typeof broker === 'function' ? broker(outside) : broker),
    ...destinations?.(outside),
  };
  const sceneEnv: Readonly<Record<string, string>> = {
    ...outboxEnv,
    DATABASE_URL: url,
    OUTBOX_DESTINATIONS: JSON.stringify(ways),
    ...env,
  };
  const retryMax = Number(sceneEnv['OUTBOX_RETRY_MAX'] ?? defaultRetryMax);
  const replicas: Replica[] = [];
  const accepted: string[] = [];
  const logs = (): string => replicas.map((replica) => replica.log()).join('\n--\n');

  const rows: OutboxScene['rows'] = (status) => readRows(db, status ?? null);
  const row: OutboxScene['row'] = async () => {
    const [only, ...more] = await rows();
    assert.equal(more.length, 0, 'there is one order');
    return only ?? assert.fail('there is no order');
  };
  return {
    db,
    rows,
    row,
    count: async (status) => (await rows(status)).length,
    async start(plan, more = {}) {
      const replica = await startReplica({ ...sceneEnv, ...more }, plan);
      replicas.push(replica);
      return replica;
    },
    async place(orders) {
      const added = orders.map((order) => (typeof order === 'string' ? { key: order } : order));
      await addOrders(db, added);
      accepted.push(...added.map(({ key }) => key));
    },
    becomes: (status) =>
      until(
        `the order is ${status}`,
        async () => {
          const now = await row();
          return now.status === status && now;
        },
        { explain: logs },
      ),
    atRest: (withinMs = 120_000) => untilAtRest(rows, withinMs, logs),
    async check() {
      const [effects, requests] = [await outside.effects(), outside.requests?.()];
      const askable = Object.entries(ways).flatMap(([name, keys]) => ('status_url' in keys ? [name] : []));
      const account = { accepted, effects, retryMax, askable };
      const breaches = await findBreaches(db, requests === undefined ? account : { ...account, requests });
      assert.deepEqual(breaches, []);
      return rows();
    },
    async close() {
      await Promise.all(replicas.map((replica) => replica.kill()));
      await own?.drop();
    },
  };
}

async function untilAtRest(rows: OutboxScene['rows'], withinMs: number, logs: () => string): Promise<void> {
  let left: readonly OrderRow[] = [];
  await until(
    'every order is sent or dead',
    async () => {
      left = (await rows()).filter(({ status }) => status !== 'sent' && status !== 'dead');
      return left.length === 0 || null;
    },
    { withinMs, explain: () => `${left.length} are not: ${describe(left[0])}\n${logs()}` },
  );
}

/** A destination that drops duplicates by their key. */
export function honest(url: string, more: DestinationKeys = {}): DestinationKeys {
  return {
    type: 'http',
    url,
    timeout_ms: timeoutMs,
    idempotency: 'enforced',
    conflict: 'processed',
    ...more,
  };
}

async function readRows(db: Database, status: OrderStatus | null): Promise<readonly OrderRow[]> {
  return db.query<OrderRow>(sql`
    SELECT o.id, idempotency_key AS key, o.status, o.retry_count AS "retryCount", o.last_error AS "lastError",
           o.in_doubt AS "inDoubt", o.lease_owner AS owner, o.lease_epoch AS epoch, l.status AS ledger
    FROM outbox.outbox_orders o JOIN outbox.idempo_ledger l USING (idempotency_key)
    WHERE ${status}::text IS NULL OR o.status = ${status} ORDER BY o.id`);
}

async function addOrders(db: Database, orders: readonly NewOrder[]): Promise<void> {
  const outcomes = await db.query<{ outcome: string }>(sql`
    SELECT added.outcome
    FROM unnest(${orders.map(({ key }) => key)}::text[],
                ${orders.map(({ destination = 'broker' }) => destination)}::text[],
                ${orders.map(({ orderingKey = null }) => orderingKey)}::text[]) WITH ORDINALITY AS o (key, destination, lane, no)
    CROSS JOIN LATERAL outbox.add_order(json_build_object('name', o.key), o.key, o.destination, o.lane) AS added`);
  for (const { outcome } of outcomes) assert.equal(outcome, 'created');
}

function describe(row: OrderRow | undefined): string {
  return row === undefined ? '' : `${row.key} is ${row.status}, ${row.lastError ?? 'without an error'}`;
}

export const keysFrom = (prefix: string, count: number): readonly string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}-${String(i).padStart(6, '0')}`);

export const staleWritesOf = (replica: Replica): Promise<number> =>
  replica.metric('redrive_stale_writes_total', 'slice="outbox"');

export async function untilStale(replica: Replica, count: number): Promise<void> {
  await until(
    `${count} stale writes are counted`,
    async () => (await staleWritesOf(replica)) >= count || null,
    { explain: replica.log },
  );
  assert.equal(await staleWritesOf(replica), count);
}
