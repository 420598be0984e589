import { readFileSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import type { DatabaseTarget as ConfiguredTarget } from '../config/resolve/resolve-database.ts';
import { readSecret } from '../config/layers/secret.ts';
import { codeOf } from '../kernel/errors.ts';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../platform/embedded/embedded-postgres.ts';
import { findRunningPostgres } from '../platform/embedded/running-postgres.ts';
import { createDatabase, type DatabaseTarget, type ServerDatabase } from '../platform/postgres/database.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';

export type OpenDatabase = Readonly<{
  /** The embedded server that this process has started and has to stop. */
  database: Pick<EmbeddedPostgres, 'stop'> | null;
  db: ServerDatabase;
}>;

export type OpenOptions = Readonly<{
  metrics?: Metrics;
  /** Use the embedded PostgreSQL of another running Redrive process: for short commands. */
  joinsRunning?: boolean;
}>;

/** Opens the configured server, or else starts an embedded PostgreSQL. */
export async function openDatabase(
  config: Config,
  logger: Logger,
  { metrics, joinsRunning = false }: OpenOptions = {},
): Promise<OpenDatabase> {
  const settings = config.database;
  const embedded =
    settings.mode === 'embedded' ? await openEmbedded(settings.dataDir, logger, joinsRunning) : null;
  const database = embedded?.database ?? null;
  const target = settings.mode === 'server' ? targetOf(settings) : embeddedTarget(embedded?.url ?? '');
  const db = createDatabase({
    target,
    direct: settings.mode === 'server' && settings.direct ? targetOf(settings.direct) : undefined,
    maxConnections: settings.maxOpenConns,
    keptIdleConnections: settings.maxIdleConns,
    maxLifetimeMs: settings.connMaxLifetimeMs,
    statementTimeoutMs: settings.statementTimeoutMs,
    applicationName: config.app.name,
    onQuery: (seconds) => metrics?.dbQueryDuration.observe(seconds),
    onIdleError: (error) => logger.warn({ err: error }, 'lost a database connection'),
  });
  return { database, db };
}

type OpenEmbedded = Readonly<{ url: string; database: EmbeddedPostgres | null }>;

async function openEmbedded(dataDir: string, logger: Logger, joinsRunning: boolean): Promise<OpenEmbedded> {
  try {
    const database = await startEmbeddedPostgres({ dataDir, log: (line) => logger.debug(line) });
    return { url: database.url, database };
  } catch (error) {
    const isInUse = codeOf(error) === 'SYS_EMBEDDED_IN_USE';
    const url = joinsRunning && isInUse ? await findRunningPostgres(dataDir) : undefined;
    if (url === undefined) throw error;
    return { url, database: null };
  }
}

function targetOf(target: ConfiguredTarget): DatabaseTarget {
  const { userFile, passwordFile } = target;
  return {
    host: target.host,
    port: target.port,
    database: target.name,
    user: () => (userFile === undefined ? target.user : readFileSync(userFile, 'utf8').trim()),
    password: () => (passwordFile === undefined ? target.password.reveal() : readSecret(passwordFile)),
    ssl: sslOf(target),
  };
}

function sslOf({ sslMode, sslCa }: ConfiguredTarget): DatabaseTarget['ssl'] {
  const ca = sslCa === undefined ? {} : { ca: readFileSync(sslCa, 'utf8') };
  switch (sslMode) {
    case 'disable':
      return false;
    case 'require':
      return { rejectUnauthorized: false };
    case 'verify-ca':
      return { ...ca, rejectUnauthorized: true, checkServerIdentity: () => undefined };
    case 'verify-full':
      return { ...ca, rejectUnauthorized: true };
  }
}

function embeddedTarget(url: string): DatabaseTarget {
  const { hostname: host, port, pathname, username, password } = new URL(url);
  return {
    host,
    port: Number(port),
    database: pathname.slice(1),
    user: () => decodeURIComponent(username),
    password: () => decodeURIComponent(password),
    ssl: false,
  };
}
