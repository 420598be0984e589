import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { migrationSources } from '../../src/compose.ts';
import { createDatabase, type Database, type DatabaseTarget } from '../../src/platform/postgres/database.ts';
import { migrateUp } from '../../src/platform/postgres/migrate.ts';

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

/** A migrated database of its own, or an empty one. */
export async function createTestDatabase(kind: 'migrated' | 'empty' = 'migrated'): Promise<TestDatabase> {
  const serverUrl = serverUrlForTests();
  const name = `test_${randomBytes(6).toString('hex')}`;
  const from = kind === 'migrated' ? template : 'template0';
  await onServer(serverUrl, (client) => client.query(`CREATE DATABASE ${name} TEMPLATE ${from}`));
  const url = urlOf(serverUrl, name);
  const db = connectTo(url);
  return {
    url,
    db,
    async drop() {
      await db.end();
      await onServer(serverUrl, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
    },
  };
}

export function connectTo(url: string, maxConnections = 10): Database {
  return createDatabase({
    target: targetOf(url),
    maxConnections,
    maxLifetimeMs: 600_000,
    applicationName: 'redrive-test',
  });
}

function targetOf(url: string): DatabaseTarget {
  const { hostname, port, pathname, username, password } = new URL(url);
  return {
    host: hostname,
    port: Number(port),
    database: pathname.slice(1),
    user: () => decodeURIComponent(username),
    password: () => decodeURIComponent(password),
    ssl: false,
  };
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
