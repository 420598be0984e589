import type { Pool } from 'pg';
import { refuse, sagaGuard } from '@redrive/client';
import type { Service } from './serve.ts';

type Order = Readonly<{ order_id: string; customer: string; amount: number }>;
type Payment = Readonly<{ payment_id: string }>;

/** Takes money from a customer's account, and gives it back. */
export async function createPayment(pool: Pool): Promise<Service> {
  const guard = sagaGuard({ pool });
  await guard.migrate();
  await pool.query(`
    CREATE TABLE IF NOT EXISTS accounts (customer text PRIMARY KEY, balance int NOT NULL CHECK (balance >= 0));
    CREATE TABLE IF NOT EXISTS payments (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id text NOT NULL,
      customer text NOT NULL REFERENCES accounts, amount int NOT NULL, refunded boolean NOT NULL DEFAULT false)`);

  const charge = guard.action<Order, Payment>(async (tx, { body: { order_id, customer, amount } }) => {
    const { rowCount } = await tx.query(
      'UPDATE accounts SET balance = balance - $2 WHERE customer = $1 AND balance >= $2',
      [customer, amount],
    );
    if (rowCount === 0) throw refuse({ reason: `${customer} cannot pay ${amount}` });
    const { rows } = await tx.query<{ id: string }>(
      'INSERT INTO payments (order_id, customer, amount) VALUES ($1, $2, $3) RETURNING id::text',
      [order_id, customer, amount],
    );
    return { payment_id: rows[0]?.id ?? '' };
  });

  const refund = guard.undo<Order, Payment>(async (tx, { answer }) => {
    await tx.query(
      `WITH refunded AS (UPDATE payments SET refunded = true WHERE id = $1 RETURNING customer, amount)
       UPDATE accounts SET balance = balance + refunded.amount FROM refunded
       WHERE accounts.customer = refunded.customer`,
      [answer.payment_id],
    );
  });

  return { name: 'payment', routes: { '/charge': charge, '/refund': refund }, stop: guard.stop };
}
