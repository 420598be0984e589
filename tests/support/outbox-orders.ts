import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { Worker } from '../../src/platform/work/work.ts';
import type { Answer, Settlement, Status } from '../../src/outbox/domain/order.ts';
import type { NewOrder } from '../../src/outbox/domain/new-order.ts';
import type { OrderCaller } from '../../src/outbox/order-requests.ts';
import { findReplay, insertOrder } from '../../src/outbox/accept/insert-order.ts';
import { findOrder } from '../../src/outbox/browse/find-order.ts';
import { resolveOrder, type OrderAction } from '../../src/outbox/decide/resolve-order.ts';
import { supersedeOrder } from '../../src/outbox/decide/supersede-order.ts';
import {
  blockOrders,
  claimOrders,
  claimProbe,
  type ClaimOptions,
  type ClaimedOrder,
} from '../../src/outbox/deliver/claim-orders.ts';
import { reapOrders } from '../../src/outbox/deliver/reap-orders.ts';
import { settleOrders, type EndedAttempt } from '../../src/outbox/deliver/settle-orders.ts';

/** The SQL functions of the outbox, bound to a database and a worker. */
export function orderStores(
  db: Database,
  worker: Worker,
  options: Readonly<{
    leaseMs?: number;
    retryMax?: number;
    backoffMs?: number;
    /** Destinations with a status URL. */
    askable?: readonly string[];
    /** Retry limits of single destinations. */
    ownRetryMax?: ReadonlyMap<string, number>;
  }> = {},
) {
  const ledgerTtlMs = 3_600_000;
  return {
    delivery: deliveryOf(db, worker, { ledgerTtlMs, ...options }),
    orders: orderActions(db, ledgerTtlMs),
  };
}

export type TestDelivery = ReturnType<typeof deliveryOf>;

/** What dispatchers and the reaper do to orders. */
function deliveryOf(
  db: Database,
  worker: Worker,
  options: Readonly<{ ledgerTtlMs: number }> & NonNullable<Parameters<typeof orderStores>[2]>,
) {
  const { ledgerTtlMs, leaseMs = 60_000, retryMax = 8, backoffMs = 0, askable = [] } = options;
  const ownRetryMax = options.ownRetryMax ?? new Map<string, number>();
  const deps = { db, worker, leaseMs, ledgerTtlMs, onSettleRetry: () => {} };
  const backoff = { initialMs: backoffMs, maxMs: backoffMs, jitter: 0 };
  const policy = { idempotency: 'none', dedupWindowMs: 0, maxAgeMs: 0, backoff } as const;
  const askStatus = async () => ({ known: 'absent' }) as const;
  const destinations = new Map(
    [...askable, ...ownRetryMax.keys()].map((name) => [
      name,
      {
        policy: { ...policy, retryMax: ownRetryMax.get(name) ?? retryMax },
        askStatus: askable.includes(name) ? askStatus : null,
      },
    ]),
  );
  return {
    claim: (claim: ClaimOptions) => claimOrders(deps, claim),
    claimProbe: (probe: Readonly<{ destination: string; notId: bigint | null }>) =>
      claimProbe(deps, { ...probe, retryMax }),
    block: (destination: string, orderingKeys: readonly string[]) =>
      blockOrders(db, destination, orderingKeys),
    settle: (attempts: readonly EndedAttempt[], until: AbortSignal) => settleOrders(deps, attempts, until),
    reap: () => reapOrders({ db, retryMax, destinations, backoff, ledgerTtlMs }),
  };
}

/** Without authentication everybody sees everything. */
export function callerCalled(actor: string): OrderCaller {
  return { actor, createdBy: null, maySee: () => true };
}

/** What callers and people do to orders; every destination is configured and accepts any request. */
function orderActions(db: Database, ledgerTtlMs: number) {
  const deps = {
    db,
    ledgerTtlMs,
    insertOrder,
    findReplay: (order: NewOrder, caller: OrderCaller) => findReplay(db, order, caller),
    findOrder: (id: bigint) => findOrder(db, id),
  };
  return {
    add: (order: NewOrder, actor: string) => insertOrder(db, order, callerCalled(actor)),
    cancel: (action: OrderAction) => resolveOrder(deps, 'cancel', action),
    skip: (action: OrderAction) => resolveOrder(deps, 'skip', action),
    async supersede(action: OrderAction, idempotencyKey: string) {
      const name = (await findOrder(db, action.id))?.destination ?? '';
      const destinations = new Map([[name, { name, isInternal: false, flawsOf: () => [] }]]);
      const corrected = { idempotencyKey, request: { n: 1 }, traceId: null, traceparent: null };
      return supersedeOrder(
        { ...deps, destinations },
        { ...action, caller: callerCalled(action.actor) },
        corrected,
      );
    },
  };
}

let made = 0;

export function newOrder(more: Partial<NewOrder> = {}): NewOrder {
  made += 1;
  return {
    idempotencyKey: `order-key-${made}`,
    destination: 'broker',
    request: '{"symbol": "USDJPY", "qty": 10000}',
    digest: `sha256:${made}`,
    orderingKey: null,
    traceId: null,
    traceparent: null,
    ...more,
  };
}

/** Claims as a dispatcher does, and blocks orders that must wait for an earlier one of their key. */
export async function claimAll(
  delivery: TestDelivery,
  more: Partial<ClaimOptions> = {},
): Promise<readonly ClaimedOrder[]> {
  const options = {
    destination: 'broker',
    kind: 'unordered',
    limit: 100,
    bytes: 8_388_608,
    retryMax: 8,
    after: null,
    ...more,
  } as const;
  const { orders, crowdedKeys } = await delivery.claim(options);
  if (crowdedKeys.length > 0) await delivery.block(options.destination, crowdedKeys);
  return orders;
}

type As<End extends Settlement['to']> = Extract<Settlement, { to: End }>;

export const anAnswer: Answer = { status: 200, digest: 'sha256:answer', outsideId: 'brk-1' };
export const sent: As<'sent'> = { to: 'sent', answer: anAnswer, isConflict: false };
export const failed: As<'failed'> = {
  to: 'failed',
  error: 'BROKER_5XX: HTTP 503',
  inDoubt: false,
  delayMs: 0,
  costsRetry: true,
};
export const dead: As<'dead'> = { to: 'dead', error: 'BAD_REQUEST: HTTP 400', inDoubt: false };
export const deadInDoubt: As<'dead'> = { to: 'dead', error: 'UNKNOWN: no answer', inDoubt: true };

export async function settleAs(
  delivery: TestDelivery,
  orders: readonly ClaimedOrder[],
  settlement: Settlement,
): Promise<readonly (Status | null)[]> {
  const settled = await delivery.settle(
    orders.map((order) => ({ order, settlement })),
    AbortSignal.timeout(10_000),
  );
  return orders.map(({ id }) => settled.find((one) => one.id === id)?.status ?? null);
}

export type OrderRow = Readonly<{
  id: bigint;
  status: Status;
  retry_count: number;
  last_error: string | null;
  fingerprint: string | null;
  resolution: string | null;
  in_doubt: boolean;
  held: boolean;
  first_sent_at: Date | null;
  lease_lost: boolean;
  response: unknown;
  ledger_status: string | null;
  expires_at: string | null;
}>;

export async function orderRow(db: Database, id: bigint): Promise<OrderRow> {
  const [row] = await db.query<OrderRow>(sql`
    SELECT o.id, o.status, o.retry_count, o.last_error, o.fingerprint, o.resolution, o.in_doubt, o.held, o.first_sent_at,
           o.lease_lost, o.response, l.status AS ledger_status, l.expires_at::text
    FROM outbox.outbox_orders o LEFT JOIN outbox.idempo_ledger l USING (idempotency_key) WHERE o.id = ${id}`);
  if (row === undefined) throw new Error(`no order ${id}`);
  return row;
}

/** The statuses in the audit log: `queued > sending > sent`. */
export async function storyOf(db: Database, id: bigint): Promise<string> {
  const rows = await db.query<{ status_from: string | null; status_to: string }>(sql`
    SELECT status_from, status_to FROM outbox.outbox_audit WHERE outbox_id = ${id} ORDER BY id`);
  return rows.map((row) => row.status_to).join(' > ');
}

export async function expireLeases(db: Database): Promise<void> {
  await db.query(sql`
    UPDATE outbox.outbox_orders SET lease_until = now() - interval '1 second' WHERE status = 'sending'`);
}
