import { Client } from 'pg';

/** Ends every connection to a test database and allows no new one, as an outage does; returns what ends the outage. */
export async function cutDatabase(databaseUrl: string): Promise<() => Promise<void>> {
  const name = new URL(databaseUrl).pathname.slice(1);
  await onServer([
    `ALTER DATABASE ${name} ALLOW_CONNECTIONS false`,
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`,
  ]);
  return () => onServer([`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`]);
}

async function onServer(statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: process.env['TEST_POSTGRES_URL'] });
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
