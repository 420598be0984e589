import { loggerFor, migrationSources } from '../../compose.ts';
import { openDatabase } from '../../compose/open-database.ts';
import type { Config } from '../../config/config.ts';
import { messageOf } from '../../kernel/errors.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { databaseEncoding, utf8Advice, type DatabaseEncoding } from '../../platform/postgres/require-utf8.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { databaseTrouble, describeServer } from '../database-trouble.ts';
import { examineConnections } from './examine-connections.ts';
import { examineAutovacuum } from './checks/autovacuum.ts';
import { examineFamily } from './checks/server-family.ts';
import { examineListen } from './examine-listen.ts';
import { examineSchema } from './examine-schema.ts';
import { attempt, ok, problem, skipped, warning, type Finding } from './finding.ts';

type ServerFacts = Readonly<{
  version: number;
  versionText: string;
  isReadOnly: boolean;
  isStandby: boolean;
}>;

const schemas = migrationSources.map(({ slice }) => slice);
const oldestVersion = 15;
const testedVersion = 17;
const skewSamples = 3;
/** Times in logs and rows no longer agree; nothing depends on it. */
const skewWarningMs = 1000;
/** Clocks without synchronization; tokens and certificates soon fail. */
const skewProblemMs = 5000;
const longTransaction = '5 minutes';

/** Checks the configured database; only reads. */
export async function* examineDatabase(config: Config): AsyncGenerator<Finding> {
  const { database } = config;
  if (database.mode === 'embedded') {
    yield skipped(
      'database',
      `not configured: \`redrive serve\` runs an embedded PostgreSQL in ${database.dataDir}; set database.host or DATABASE_URL to use your own`,
    );
    return;
  }
  const { db } = await openDatabase(config, loggerFor(config));
  try {
    const facts = await enter(db);
    if (facts instanceof Error) {
      const trouble = databaseTrouble(facts, database);
      yield problem(
        'database',
        `${describeServer(database)}: ${trouble?.found ?? messageOf(facts)}`,
        trouble?.advice ?? 'see the error message and the PostgreSQL log',
      );
      return;
    }
    yield reached(describeServer(database), facts);
    yield judgeVersion(facts.version, facts.versionText);
    yield await attempt('family', () => examineFamily(db, database.wake));
    yield await attempt('encoding', async () => judgeEncoding(await databaseEncoding(db)));
    yield await attempt('clock', async () => judgeClock(await measureSkew(db)));
    yield* examineSchema(db, config);
    yield await attempt('connections', () => examineConnections(db, config));
    yield await attempt('listen', () => examineListen(db, database));
    yield await attempt('transactions', () => examineTransactions(db));
    yield await attempt('autovacuum', () => examineAutovacuum(db, schemas));
  } finally {
    await db.end();
  }
}

async function enter(db: Database): Promise<ServerFacts | Error> {
  try {
    const rows = await db.query<ServerFacts>(sql`
      SELECT current_setting('server_version_num')::int AS version,
             current_setting('server_version') AS "versionText",
             current_setting('transaction_read_only')::boolean AS "isReadOnly",
             pg_is_in_recovery() AS "isStandby"`);
    return rows[0] ?? new Error('the server returned no rows');
  } catch (error) {
    return error instanceof Error ? error : new Error(messageOf(error));
  }
}

function reached(server: string, { isReadOnly, isStandby }: ServerFacts): Finding {
  if (isStandby)
    return problem('database', `${server}: a read-only standby`, 'set database.host to the primary');
  if (isReadOnly)
    return problem(
      'database',
      `${server}: read-only`,
      'set default_transaction_read_only to off for the user and the database',
    );
  return ok('database', server);
}

export function judgeVersion(version: number, text: string): Finding {
  const major = Math.floor(version / 10_000);
  const found = `PostgreSQL ${text}`;
  if (major >= testedVersion) return ok('version', found);
  if (major >= oldestVersion)
    return warning(
      'version',
      found,
      `plan an upgrade: Redrive is tested on PostgreSQL ${testedVersion} and later`,
    );
  return problem('version', found, `use PostgreSQL ${testedVersion} or later`);
}

function judgeEncoding({ name, encoding }: DatabaseEncoding): Finding {
  return encoding === 'UTF8'
    ? ok('encoding', encoding)
    : problem('encoding', `database ${name} has the encoding ${encoding}; Redrive needs UTF8`, utf8Advice);
}

type Skew = Readonly<{ skewMs: number; roundTripMs: number }>;

/** The sample with the shortest round trip is the most exact. */
async function measureSkew(db: Database): Promise<Skew> {
  let best: Skew | undefined;
  for (let i = 0; i < skewSamples; i += 1) {
    const sentMs = Date.now();
    const begin = performance.now();
    const rows = await db.query<{ ms: number }>(sql`
      SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS ms`);
    const roundTripMs = performance.now() - begin;
    const skewMs = sentMs + roundTripMs / 2 - (rows[0]?.ms ?? Number.NaN);
    if (best === undefined || roundTripMs < best.roundTripMs) best = { skewMs, roundTripMs };
  }
  return best ?? { skewMs: Number.NaN, roundTripMs: Number.NaN };
}

/** Leases use only the database clock, so skew loses no message; but logs and timestamps would mislead. */
export function judgeClock({ skewMs, roundTripMs }: Skew): Finding {
  // The round trip may explain this much of the difference.
  const certainMs = Math.max(0, Math.abs(skewMs) - roundTripMs / 2);
  const direction = skewMs > 0 ? 'ahead of' : 'behind';
  const found = `this machine is ${(Math.abs(skewMs) / 1000).toFixed(3)} s ${direction} the database`;
  if (certainMs > skewProblemMs) return problem('clock', found, 'synchronise both clocks with NTP');
  if (certainMs > skewWarningMs) return warning('clock', found, 'synchronise both clocks with NTP');
  return ok('clock', found);
}

/** Old transactions keep vacuum from removing dead rows, which slows down every claim. */
async function examineTransactions(db: Database): Promise<Finding> {
  const rows = await db.query<{ pid: number; application: string; state: string; minutes: number }>(sql`
    SELECT pid, application_name AS application, state,
           floor(extract(epoch FROM clock_timestamp() - xact_start) / 60)::int AS minutes
    FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
      AND xact_start < clock_timestamp() - ${longTransaction}::interval
    ORDER BY xact_start
    LIMIT 5`);
  const oldest = rows[0];
  if (oldest === undefined)
    return ok('transactions', `no long-running transactions (over ${longTransaction})`);
  const names = rows.map(
    ({ pid, application, state, minutes }) =>
      `pid ${pid} (${application || 'unnamed'}, ${state}, ${minutes} min)`,
  );
  return warning(
    'transactions',
    `open for more than ${longTransaction}: ${names.join(', ')}`,
    `they slow down every claim; end an abandoned one with SELECT pg_terminate_backend(${oldest.pid})`,
  );
}
