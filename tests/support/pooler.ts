import { fixedLogin } from '../../src/platform/postgres/login.ts';
import type { DatabaseOptions, DatabaseTarget } from '../../src/platform/postgres/database.ts';

/**
 * Where a server under test finds its database: at the database itself, or, in a test run through PgBouncer, at the pooler,
 * with a direct URL past it or without one.
 */
export function databaseEnv(url: string): Readonly<Record<string, string>> {
  const pooled = pooledUrl(url);
  if (pooled === undefined) return { DATABASE_URL: url };
  return {
    DATABASE_URL: pooled,
    ...(polls() ? { DATABASE_WAKE: 'poll' } : { DATABASE_DIRECT_URL: url }),
  };
}

export function databaseTargets(url: string): Pick<DatabaseOptions, 'target' | 'direct'> {
  const pooled = pooledUrl(url);
  if (pooled === undefined) return { target: targetOf(url) };
  return { target: targetOf(pooled), direct: polls() ? undefined : targetOf(url) };
}

function pooledUrl(url: string): string | undefined {
  const pooler = process.env['TEST_POOLER_URL'];
  if (pooler === undefined) return undefined;
  const pooled = new URL(url);
  pooled.host = new URL(pooler).host;
  return pooled.href;
}

function polls(): boolean {
  return process.env['TEST_POOLER_WAKE'] === 'poll';
}

function targetOf(url: string): DatabaseTarget {
  const { hostname, port, pathname, username, password } = new URL(url);
  return {
    host: hostname,
    port: Number(port),
    database: pathname.slice(1),
    login: fixedLogin(decodeURIComponent(username), decodeURIComponent(password)),
    ssl: false,
  };
}
