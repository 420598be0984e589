import { Pool } from 'pg';
import { signUp } from './sign-up.ts';

/** Signs up the customers that are named as arguments. */
const pool = new Pool({ connectionString: process.env['DATABASE_URL'] });
await pool.query('CREATE TABLE IF NOT EXISTS customers (address text PRIMARY KEY)');
for (const address of process.argv.slice(2)) process.stdout.write(`${await outcomeOf(address)}\n`);
await pool.end();

async function outcomeOf(address: string): Promise<string> {
  try {
    return `signed up ${address}; job ${await signUp(pool, address)} sends the mail`;
  } catch (error) {
    const isUniqueViolation = (error as Readonly<{ code?: unknown }>).code === '23505';
    if (isUniqueViolation) return `${address} is already signed up`;
    throw error;
  }
}
