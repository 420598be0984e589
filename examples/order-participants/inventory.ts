import type { Pool } from 'pg';
import { refuse, sagaGuard } from '@redrive/client';
import type { Service } from './serve.ts';

type Order = Readonly<{ order_id: string; sku: string; qty: number }>;
type Reservation = Readonly<{ reservation_id: string }>;

/** Holds goods for an order, and lets them go again. */
export async function createInventory(pool: Pool): Promise<Service> {
  const guard = sagaGuard({ pool });
  await guard.migrate();
  await pool.query(`
    CREATE TABLE IF NOT EXISTS stock (sku text PRIMARY KEY, available int NOT NULL CHECK (available >= 0));
    CREATE TABLE IF NOT EXISTS reservations (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id text NOT NULL,
      sku text NOT NULL REFERENCES stock, qty int NOT NULL CHECK (qty > 0))`);

  const reserve = guard.action<Order, Reservation>(async (tx, { body: { order_id, sku, qty } }) => {
    const { rowCount } = await tx.query(
      'UPDATE stock SET available = available - $2 WHERE sku = $1 AND available >= $2',
      [sku, qty],
    );
    if (rowCount === 0) throw refuse({ reason: `there are no ${qty} of ${sku}` });
    const { rows } = await tx.query<{ id: string }>(
      'INSERT INTO reservations (order_id, sku, qty) VALUES ($1, $2, $3) RETURNING id::text',
      [order_id, sku, qty],
    );
    return { reservation_id: rows[0]?.id ?? '' };
  });

  // What the action answered names the reservation, even where the saga never heard of it.
  const release = guard.undo<Order, Reservation>(async (tx, { answer }) => {
    await tx.query(
      `WITH released AS (DELETE FROM reservations WHERE id = $1 RETURNING sku, qty)
       UPDATE stock SET available = available + released.qty FROM released WHERE stock.sku = released.sku`,
      [answer.reservation_id],
    );
  });

  return { name: 'inventory', routes: { '/reserve': reserve, '/release': release }, stop: guard.stop };
}
