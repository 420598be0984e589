import { readFileSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import type { DatabaseTarget as ConfiguredTarget } from '../config/resolve/resolve-database.ts';
import { readLogin } from '../config/layers/secret.ts';
import { codeOf } from '../kernel/errors.ts';
import { startEmbeddedPostgres, type EmbeddedPostgres } from '../platform/embedded/embedded-postgres.ts';
import { findRunningPostgres } from '../platform/embedded/running-postgres.ts';
import {
  createDatabase,
  type DatabaseOptions,
  type DatabaseTarget,
  type ServerDatabase,
} from '../platform/postgres/database.ts';
import { fixedLogin, type LoginSource } from '../platform/postgres/login.ts';
import { reloadOutcomes } from '../platform/postgres/login-rotation.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';

export type OpenDatabase = Readonly<{
  /** The embedded server that this process has started and has to stop. */
  database: Pick<EmbeddedPostgres, 'stop' | 'url' | 'exited'> | null;
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
  const db = createDatabase({
    ...(settings.mode === 'server' ? targetsOf(settings) : { target: embeddedTarget(embedded?.url ?? '') }),
    maxConnections: settings.maxOpenConns,
    keptIdleConnections: settings.maxIdleConns,
    maxLifetimeMs: settings.connMaxLifetimeMs,
    statementTimeoutMs: settings.statementTimeoutMs,
    connectTimeoutMs: settings.connectTimeoutMs,
    applicationName: config.app.name,
    onQuery: (seconds) => metrics?.dbQueryDuration.observe(seconds),
    onIdleError: (error) => logger.warn({ err: error }, 'lost a database connection'),
    onReload: countReloads(logger, metrics),
  });
  return { database, db };
}

/** Logs a trouble once, however often it is met. */
function countReloads(
  logger: Logger,
  metrics: Metrics | undefined,
): NonNullable<DatabaseOptions['onReload']> {
  const reloads = metrics?.counter({
    name: 'secrets_reload_total',
    help: 'Attempts to apply a changed secret file.',
    labelNames: ['secret', 'outcome'],
  });
  for (const outcome of reloadOutcomes) reloads?.inc({ secret: 'database', outcome }, 0);
  let logged: string | null = null;
  return (outcome, trouble) => {
    reloads?.inc({ secret: 'database', outcome });
    if (outcome === 'reloaded') logger.info('reloaded the database login');
    else if (trouble !== logged) logger.warn({ outcome }, `keeping the database login: ${trouble}`);
    logged = trouble;
  };
}

function targetsOf(settings: Extract<Config['database'], { mode: 'server' }>) {
  const { direct } = settings;
  const login = loginOf(settings);
  return {
    target: targetOf(settings, login),
    direct: direct && targetOf(direct, directLoginOf(direct, settings, login)),
  };
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

function targetOf(target: ConfiguredTarget, login: LoginSource): DatabaseTarget {
  const { host, port, name: database } = target;
  return { host, port, database, login, ssl: sslOf(target) };
}

/** Of the configuration, and of the files that some of it came from. */
function loginOf(target: ConfiguredTarget): LoginSource {
  const { user, userFile, password, passwordFile } = target;
  return {
    initial: { user, password: password.reveal() },
    files: [...new Set([userFile, passwordFile])].filter((file) => file !== undefined),
    read: () => readLogin(target),
  };
}

/** One that the direct target shares with the other connections changes for both at once. */
function directLoginOf(direct: ConfiguredTarget, target: ConfiguredTarget, login: LoginSource): LoginSource {
  const isShared =
    direct.user === target.user &&
    direct.userFile === target.userFile &&
    direct.passwordFile === target.passwordFile &&
    direct.password === target.password;
  return isShared ? login : loginOf(direct);
}

function sslOf({ sslMode, sslRootCert }: ConfiguredTarget): DatabaseTarget['ssl'] {
  const ca = sslRootCert === undefined ? {} : { ca: readFileSync(sslRootCert, 'utf8') };
  switch (sslMode) {
    case 'disable':
      return false;
    case 'require':
      // As with libpq, a file of authorities makes it verify them.
      return sslRootCert === undefined ? { rejectUnauthorized: false } : verifiedBy(ca);
    case 'verify-ca':
      return verifiedBy(ca);
    case 'verify-full':
      return { ...ca, rejectUnauthorized: true };
  }
}

const verifiedBy = (ca: Readonly<{ ca?: string }>) => ({
  ...ca,
  rejectUnauthorized: true,
  checkServerIdentity: () => undefined,
});

function embeddedTarget(url: string): DatabaseTarget {
  const { hostname: host, port, pathname, username, password } = new URL(url);
  return {
    host,
    port: Number(port),
    database: pathname.slice(1),
    login: fixedLogin(decodeURIComponent(username), decodeURIComponent(password)),
    ssl: false,
  };
}
