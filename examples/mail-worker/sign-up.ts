import type { Pool } from 'pg';
import { jobs } from '@redrive/client';
import { mail } from './mail.ts';

/** Stores the customer and the mail job in one transaction: both are committed, or neither is. */
export async function signUp(pool: Pool, address: string): Promise<string> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('INSERT INTO customers (address) VALUES ($1)', [address]);
    const { jobId } = await jobs.enqueue(
      client,
      mail,
      { to: address, subject: 'Welcome' },
      // One mail, even if the same customer signs up again before it is sent.
      { dedupeKey: `welcome:${address}` },
    );
    await client.query('COMMIT');
    return jobId;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}
