import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { findReplay, insertOrder } from '../../src/outbox/accept/insert-order.ts';
import { findOrder } from '../../src/outbox/browse/find-order.ts';
import type { SupersedeDeps } from '../../src/outbox/decide/supersede-order.ts';
import { addOutboxRoutes, type OutboxRouteDeps } from '../../src/outbox/index.ts';
import type { Settlement } from '../../src/outbox/domain/order.ts';
import { openDestination } from '../../src/outbox/deliver/senders/open-destination.ts';
import { noMasking } from './no-masking.ts';
import { createTestServer } from './test-server.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { isOutage } from '../../src/platform/postgres/sqlstate.ts';
import { createApiClient, type Answer, type ApiClient } from './api-client.ts';
import { createTestDatabase } from './database.ts';
import { httpSettings } from './destinations.ts';
import { claimAll, orderStores, settleAs } from './outbox-orders.ts';
import { createTestWorker } from './worker.ts';

/**
 * The outbox's routes with a real server and a real database, without dispatchers: orders stay as a test leaves them.
 * `broker` accepts the orders of the example, `warehouse` accepts any object.
 */
export type OutboxApi = Readonly<{
  api: ApiClient;
  db: Database;
  supersedeDeps: SupersedeDeps;
  /** Posts an order; the header defaults to the key of the body. */
  place(body: OrderBody, headers?: Readonly<Record<string, string>>): Promise<Answer<Accepted>>;
  /** Adds an order to the warehouse and returns its id. */
  placed(more?: Partial<OrderBody>): Promise<bigint>;
  /** Claims this order and settles the attempt. */
  attempt(id: bigint, settlement: Settlement): Promise<void>;
  /** Archives the order as retention does once its key has expired. */
  archive(id: bigint): Promise<void>;
  drop(): Promise<void>;
}>;

export type OrderBody = Readonly<{ idempotency_key: string; request: unknown; [field: string]: unknown }>;
export type Accepted = Readonly<{ id: number; idempotency_key: string; status: string; created_at: string }>;

export const root = '/api/v1/outbox';

let made = 0;

export function newKey(): string {
  made += 1;
  return `test-key-${String(made).padStart(6, '0')}`;
}

export const anOrder = { symbol: 'USDJPY', intent: 'BUY', qty: 10_000, limit_price: 145.001 };

export async function startOutboxApi(more: Partial<OutboxRouteDeps> = {}): Promise<OutboxApi> {
  const database = await createTestDatabase();
  const { db } = database;
  const { delivery } = orderStores(db, createTestWorker(db));
  const destinations = openDestinations();
  const masking = noMasking('destinations', 'outbox:payloads:view');
  const deps = { db, destinations, statusOf: () => null, ledgerTtlMs: 3_600_000, masking, ...more };
  const { server, logged } = createTestServer({ isOutage });
  server.addRoutes('outbox', (app) => addOutboxRoutes(app, deps));
  await server.start();
  const api = createApiClient(`http://127.0.0.1:${server.address()?.port}`);

  const place: OutboxApi['place'] = (body, headers = { 'idempotency-key': body.idempotency_key }) =>
    api.post(`${root}/orders`, body, headers);

  return {
    api,
    db,
    supersedeDeps: {
      ...deps,
      insertOrder,
      findReplay: (order, caller) => findReplay(db, order, caller),
      findOrder: (id) => findOrder(db, id),
    },
    place,
    async placed(order = {}) {
      const body = { destination: 'warehouse', idempotency_key: newKey(), request: { sku: 'A-1' }, ...order };
      const answer = await place(body);
      assert.equal(answer.status, 201, answer.text);
      return BigInt(answer.body.id);
    },
    async attempt(id, settlement) {
      const [row] = await db.query<{ destination: string; ordering_key: string | null }>(sql`
        UPDATE outbox.outbox_orders SET next_attempt_at = now() - interval '1 year' WHERE id = ${id}
        RETURNING destination, ordering_key`);
      const kind = row?.ordering_key === null ? 'unordered' : 'ordered';
      const claimed = await claimAll(delivery, { destination: row?.destination ?? '', kind, limit: 1 });
      assert.deepEqual(
        claimed.map((order) => order.id),
        [id],
      );
      await settleAs(delivery, claimed, settlement);
    },
    async archive(id) {
      await db.query(sql`
        WITH gone AS (DELETE FROM outbox.outbox_orders WHERE id = ${id} RETURNING *)
        INSERT INTO outbox.outbox_orders_archive
        SELECT (jsonb_populate_record(
          NULL::outbox.outbox_orders_archive, to_jsonb(gone) || jsonb_build_object('archived_at', now()))).*
        FROM gone`);
      await db.query(sql`
        WITH gone AS (DELETE FROM outbox.idempo_ledger WHERE outbox_id = ${id} RETURNING *)
        INSERT INTO outbox.idempo_ledger_archive SELECT gone.*, now() FROM gone`);
    },
    async drop() {
      await server.stop(AbortSignal.timeout(5000));
      for (const destination of destinations.values()) await destination.close();
      await database.drop();
      const failures = logged().filter(({ level }) => level === 'error' || level === 'fatal');
      assert.deepEqual(failures, [], 'no request was answered with 500');
    },
  };
}

function openDestinations() {
  const file = new URL('../../config/schemas/order.json', import.meta.url);
  const schema = JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<string, unknown>>;
  const url = 'http://127.0.0.1:9/orders';
  const backoff = { initialMs: 0, maxMs: 0, jitter: 0 };
  const open = (name: string, more: Parameters<typeof httpSettings>[0]) =>
    openDestination(httpSettings({ ...more, name }), {
      broker: null,
      retryMax: 8,
      backoff,
      isInternal: name.startsWith('_'),
    });
  return new Map(
    [open('broker', { url, schema }), open('warehouse', { url }), open('_saga_events', { url })].map(
      (destination) => [destination.name, destination],
    ),
  );
}
