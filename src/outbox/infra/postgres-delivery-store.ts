import type { Backoff } from '../../kernel/backoff.ts';
import { persist } from '../../platform/postgres/persist.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Worker } from '../../platform/postgres/work.ts';
import type { Settlement } from '../domain/order.ts';
import type { DeliveryStore, SettledAttempt } from '../usecase/ports.ts';
import { lockLedger } from './orders-table.ts';
import { claimOrders, claimProbe, holdBack } from './postgres-claim.ts';
import { reapOrders } from './postgres-reap.ts';
import { settleAttempts } from './postgres-settle.ts';

export type DeliveryStoreOptions = Readonly<{
  leaseMs: number;
  retryMax: number;
  /** Of destinations that have a number of retries of their own. */
  ownRetryMax?: ReadonlyMap<string, number>;
  backoff: Backoff;
  ledgerTtlMs: number;
  /** Destinations that can be asked whether an order has happened. */
  askable: readonly string[];
  onSettleRetry: (error: unknown) => void;
}>;

export function createPostgresDeliveryStore(
  db: Database,
  worker: Worker,
  options: DeliveryStoreOptions,
): DeliveryStore {
  const {
    leaseMs,
    retryMax,
    ownRetryMax = new Map<string, number>(),
    backoff,
    ledgerTtlMs,
    askable,
  } = options;
  return {
    claim: (claim) => claimOrders(db, worker, { ...claim, leaseMs }),
    holdBack: (destination, orderingKeys) => holdBack(db, destination, orderingKeys),
    claimProbe: (probe) =>
      claimProbe(worker, { ...probe, retryMax: ownRetryMax.get(probe.destination) ?? retryMax, leaseMs }),

    async succeeded(keys) {
      const rows = await db.transaction(async (tx) => {
        await lockLedger(tx, keys);
        return tx.query<{ idempotency_key: string }>(sql`
          SELECT idempotency_key FROM outbox.idempo_ledger
          WHERE idempotency_key = ANY(${keys}::text[]) AND status = 'succeeded'`);
      });
      return new Set(rows.map((row) => row.idempotency_key));
    },

    async settle(attempts, signal) {
      const settled: SettledAttempt[] = [];
      const store = async (items: typeof attempts): Promise<void> => {
        settled.push(...(await settleAttempts({ db, worker, ledgerTtlMs }, items)));
      };
      await persist(
        attempts.toSorted((a, b) => (a.order.id < b.order.id ? -1 : 1)),
        {
          store,
          storeCulprit: ({ order, settlement }) => store([{ order, settlement: withoutText(settlement) }]),
          until: signal,
          onRetry: options.onSettleRetry,
        },
      );
      return settled;
    },

    reap: () => reapOrders({ db, retryMax, ownRetryMax, backoff, ledgerTtlMs, askable }),

    async waitingDestinations() {
      // One look at the index per destination, however many rows wait.
      const rows = await db.query<{ destination: string }>(sql`
        WITH RECURSIVE found AS (
          (SELECT destination FROM outbox.outbox_orders ORDER BY destination LIMIT 1)
          UNION ALL
          SELECT (SELECT o.destination FROM outbox.outbox_orders o
                  WHERE o.destination > found.destination ORDER BY o.destination LIMIT 1)
          FROM found WHERE found.destination IS NOT NULL
        )
        SELECT destination FROM found
        WHERE destination IS NOT NULL AND (
          EXISTS (SELECT 1 FROM outbox.outbox_orders o WHERE o.destination = found.destination
                  AND o.ordering_key IS NULL AND o.status IN ('queued', 'failed'))
          OR EXISTS (SELECT 1 FROM outbox.outbox_orders o WHERE o.destination = found.destination
                     AND o.ordering_key IS NOT NULL AND NOT o.held AND o.status IN ('queued', 'failed')))`);
      return rows.map(({ destination }) => destination);
    },
  };
}

/** A text from outside that the database refuses never keeps an attempt open. */
function withoutText(settlement: Settlement): Settlement {
  switch (settlement.to) {
    case 'sent':
      return { ...settlement, answer: { ...settlement.answer, outsideId: null } };
    case 'failed':
    case 'dead':
    case 'unsendable':
      return { ...settlement, error: 'UNKNOWN: the error text could not be stored' };
    case 'released':
      return { ...settlement, reason: 'the reason could not be stored' };
    case 'known':
      return settlement;
  }
}
