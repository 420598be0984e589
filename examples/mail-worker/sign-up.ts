import type { Pool } from 'pg';
import { jobs } from '../../src/sdk/index.ts';
import { mail } from './mail.ts';

/** The customer and the mail to the customer are one fact: either both are there after the commit, or neither is. */
export async function signUp(pool: Pool, address: string): Promise<string> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('INSERT INTO customers (address) VALUES ($1)', [address]);
    const { jobId } = await jobs.enqueue(
      client,
      mail,
      { to: address, subject: 'Welcome' },
      // Whoever signs up twice in a row is greeted once.
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
