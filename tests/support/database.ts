import { randomBytes } from 'node:crypto';
import { Client, Pool } from 'pg';
import { migrationSources } from '../../src/compose.ts';
import { sleep } from '../../src/kernel/clock.ts';
import { createDatabase, type Database } from '../../src/platform/postgres/database.ts';
import { migrateUp } from '../../src/platform/postgres/migrate.ts';
import { createUserDatabase } from '../../src/sdk/user-database.ts';
import { databaseTargets } from './pooler.ts';

export { migrationSources };

/**
 * Databases for tests, on the server that the test command started. Each test file takes its own, cloned from
 * one migrated template, so that files cannot see each other's rows.
 */
const template = 'redrive_template';

export type TestDatabase = Readonly<{
  url: string;
  db: Database;
  drop(): Promise<void>;
}>;

export async function makeTemplateDatabase(serverUrl: string): Promise<void> {
  await onServer(serverUrl, async (client) => {
    await client.query(`DROP DATABASE IF EXISTS ${template} WITH (FORCE)`);
    await client.query(`CREATE DATABASE ${template}`);
  });
  const db = connectTo(urlOf(serverUrl, template));
  try {
    await migrateUp(db, migrationSources);
  } finally {
    await db.end();
  }
}

const madeFrom = {
  migrated: template,
  empty: 'template0',
  latin1: "template0 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C'",
} as const;

/** A migrated database of its own, an empty one, or an empty one that is not UTF-8. */
export async function createTestDatabase(kind: keyof typeof madeFrom = 'migrated'): Promise<TestDatabase> {
  const serverUrl = serverUrlForTests();
  const name = `test_${randomBytes(6).toString('hex')}`;
  const from = madeFrom[kind];
  await onServer(serverUrl, (client) => client.query(`CREATE DATABASE ${name} TEMPLATE ${from}`));
  const url = urlOf(serverUrl, name);
  const db = connectTo(url);
  return {
    url,
    db,
    async drop() {
      await db.end();
      await onServer(serverUrl, async (client) => {
        await letSessionsEnd(client, name);
        await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      });
    },
  };
}

/** Sessions of a pool that has ended last a moment longer; ended by force, they report an error that nobody handles. */
async function letSessionsEnd(client: Client, database: string): Promise<void> {
  for (let i = 0; i < 20; i += 1) {
    const { rowCount } = await client.query('SELECT 1 FROM pg_stat_activity WHERE datname = $1', [database]);
    if (rowCount === 0) return;
    await sleep(25);
  }
}

/** With TEST_DATABASE=sdk as in a service that uses the client library, else as in the server. */
export function connectTo(url: string, maxConnections = 10): Database {
  return process.env['TEST_DATABASE'] === 'sdk'
    ? connectAsService(url, maxConnections)
    : connectAsServer(url, maxConnections);
}

/** A pool of a service that has told its driver to read every value in a way of its own. */
function connectAsService(url: string, maxConnections: number): Database {
  const pool = new Pool({
    connectionString: url,
    max: maxConnections,
    types: { getTypeParser: () => ((text: string) => `as the service reads ${text}`) as never },
  });
  pool.on('error', () => {});
  const database = createUserDatabase(pool, { connectWithinMs: 10_000 });
  return { ...database, end: () => pool.end() };
}

function connectAsServer(url: string, maxConnections: number): Database {
  return createDatabase({
    ...databaseTargets(url),
    maxConnections,
    maxLifetimeMs: 600_000,
    applicationName: 'redrive-test',
  });
}

function serverUrlForTests(): string {
  const url = process.env['TEST_POSTGRES_URL'];
  if (url === undefined) throw new Error('run this through `npm test -- <file>`: it needs a PostgreSQL');
  return url;
}

function urlOf(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}

async function onServer(serverUrl: string, work: (client: Client) => Promise<unknown>): Promise<void> {
  const client = new Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}
