import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import { sagaGuard } from '@redrive/client';
import type { Service } from './serve.ts';

type Order = Readonly<{ order_id: string }>;
type Shipment = Readonly<{ shipment_id: string }>;

/** Packs a parcel, which takes longer than a caller waits, and hands it over. */
export async function createShipping(pool: Pool, packMs = 2000): Promise<Service> {
  const guard = sagaGuard({ pool });
  await guard.migrate();
  await pool.query(`
    CREATE TABLE IF NOT EXISTS shipments (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id text NOT NULL, label text NOT NULL,
      called_back boolean NOT NULL DEFAULT false)`);

  const dispatch = guard.longAction<Order, string, Shipment>({
    leaseMs: 15_000,
    // Nothing of this counts until the shipment is there; a repetition may pack again.
    work: async ({ body }, signal) => {
      await wait(packMs, undefined, { signal });
      return `parcel of order ${body.order_id}`;
    },
    effect: async (tx, label, { body }) => {
      const { rows } = await tx.query<{ id: string }>(
        'INSERT INTO shipments (order_id, label) VALUES ($1, $2) RETURNING id::text',
        [body.order_id, label],
      );
      return { shipment_id: rows[0]?.id ?? '' };
    },
  });

  const callBack = guard.undo<Order, Shipment>(async (tx, { answer }) => {
    await tx.query('UPDATE shipments SET called_back = true WHERE id = $1', [answer.shipment_id]);
  });

  return { name: 'shipping', routes: { '/dispatch': dispatch, '/call-back': callBack }, stop: guard.stop };
}
