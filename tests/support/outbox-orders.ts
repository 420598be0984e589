import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { Worker } from '../../src/platform/postgres/work.ts';
import type { Answer, Settlement, Status } from '../../src/outbox/domain/order.ts';
import { createPostgresDeliveryStore } from '../../src/outbox/infra/postgres-delivery-store.ts';
import { createPostgresOrderStore } from '../../src/outbox/infra/postgres-order-store.ts';
import type { ClaimOptions, ClaimedOrder, DeliveryStore, NewOrder } from '../../src/outbox/usecase/ports.ts';

/** Orders straight in the tables, for tests of what works on them. */
export function orderStores(
  db: Database,
  worker: Worker,
  options: Readonly<{
    leaseMs?: number;
    retryMax?: number;
    backoffMs?: number;
    askable?: readonly string[];
  }> = {},
) {
  const ledgerTtlMs = 3_600_000;
  const delivery = createPostgresDeliveryStore(db, worker, {
    leaseMs: options.leaseMs ?? 60_000,
    retryMax: options.retryMax ?? 8,
    backoff: { initialMs: options.backoffMs ?? 0, maxMs: options.backoffMs ?? 0, jitter: 0 },
    ledgerTtlMs,
    askable: options.askable ?? [],
    onSettleRetry: () => {},
  });
  return { delivery, orders: createPostgresOrderStore(db, { ledgerTtlMs }) };
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

/** As a dispatcher does: claims, and then holds back what was found behind another of its key. */
export async function claimAll(
  delivery: DeliveryStore,
  more: Partial<ClaimOptions> = {},
): Promise<readonly ClaimedOrder[]> {
  const options = {
    destination: 'broker',
    lane: 'free',
    limit: 100,
    retryMax: 8,
    after: null,
    ...more,
  } as const;
  const { orders, crowded } = await delivery.claim(options);
  if (crowded.length > 0) await delivery.holdBack(options.destination, crowded);
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
  delivery: DeliveryStore,
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
    SELECT o.id, o.status, o.retry_count, o.last_error, o.resolution, o.in_doubt, o.held, o.first_sent_at,
           o.lease_lost, o.response, l.status AS ledger_status, l.expires_at::text
    FROM outbox.outbox_orders o LEFT JOIN outbox.idempo_ledger l USING (idempotency_key) WHERE o.id = ${id}`);
  if (row === undefined) throw new Error(`no order ${id}`);
  return row;
}

/** `queued > sending > sent`, as the audit tells it. */
export async function storyOf(db: Database, id: bigint): Promise<string> {
  const rows = await db.query<{ status_from: string | null; status_to: string }>(sql`
    SELECT status_from, status_to FROM outbox.outbox_audit WHERE outbox_id = ${id} ORDER BY id`);
  return rows.map((row) => row.status_to).join(' > ');
}

export async function expireLeases(db: Database): Promise<void> {
  await db.query(sql`
    UPDATE outbox.outbox_orders SET lease_until = now() - interval '1 second' WHERE status = 'sending'`);
}
