import assert from 'node:assert/strict';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from './eventually.ts';
import { startPartner, type Partner, type PartnerOptions } from './partner.ts';
import { startTestSystem, type TestSystem, type TestSystemOptions } from './start-system.ts';

/** The whole system with a real partner behind the destination `broker`. */
export type OutboxSystem = Readonly<{
  system: TestSystem;
  partner: Partner;
  /** Posts an order; its id. */
  order(more?: Readonly<Record<string, unknown>>): Promise<bigint>;
  /** Resolves with the row when the order has this status. */
  becomes(id: bigint, status: string, withinMs?: number): Promise<StoredOrder>;
  drop(): Promise<void>;
}>;

export type StoredOrder = Readonly<{
  id: bigint;
  idempotency_key: string;
  status: string;
  retry_count: number;
  last_error: string | null;
  in_doubt: boolean;
  first_sent_at: Date | null;
}>;

export type OutboxSystemOptions = Omit<TestSystemOptions, 'database'> &
  Readonly<{
    partner?: PartnerOptions;
    /** Keys of the destination `broker`, beside type and url. */
    broker?: Readonly<Record<string, unknown>>;
    destinations?: Readonly<Record<string, unknown>>;
  }>;

/** Waits of milliseconds, so that a test sees a whole life of an order. */
export const fastEnv = {
  OUTBOX_BACKOFF_INITIAL_MS: '20',
  OUTBOX_BACKOFF_MAX_MS: '80',
  OUTBOX_IDLE_SLEEP_MS: '20',
} as const;

let made = 0;

export async function startOutboxSystem(options: OutboxSystemOptions = {}): Promise<OutboxSystem> {
  const partner = await startPartner(options.partner);
  const destinations = {
    broker: {
      type: 'http',
      url: partner.url,
      timeout_ms: 500,
      idempotency: 'enforced',
      conflict: 'processed',
      ...options.broker,
    },
    ...options.destinations,
  };
  const system = await startTestSystem({
    ...options,
    env: { ...fastEnv, OUTBOX_DESTINATIONS: JSON.stringify(destinations), ...options.env },
  });
  return {
    system,
    partner,
    async order(more = {}) {
      made += 1;
      const key = `e2e-order-${made}`;
      const body = { destination: 'broker', idempotency_key: key, request: { n: made }, ...more };
      const answer = await system.api.post<{ id: number }>('/api/v1/outbox/orders', body, {
        'idempotency-key': body.idempotency_key,
      });
      assert.equal(answer.status, 201, JSON.stringify(answer.body));
      return BigInt(answer.body.id);
    },
    becomes: (id, status, withinMs = 15_000) => orderBecomes(system.db, id, { status, withinMs }),
    async drop() {
      await system.drop();
      await partner.stop();
    },
  };
}

export async function orderBecomes(
  db: Database,
  id: bigint,
  { status, withinMs }: Readonly<{ status: string; withinMs: number }>,
): Promise<StoredOrder> {
  return eventually(
    async () => {
      const [row] = await db.query<StoredOrder>(sql`
        SELECT id, idempotency_key, status, retry_count, last_error, in_doubt, first_sent_at
        FROM outbox.outbox_orders WHERE id = ${id}`);
      assert.ok(row);
      assert.equal(row.status, status, row.last_error ?? '');
      return row;
    },
    { withinMs },
  );
}
