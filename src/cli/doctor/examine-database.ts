import { loggerFor, openDatabase } from '../../compose.ts';
import type { Config } from '../../config.ts';
import { messageOf } from '../../kernel/errors.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { databaseTrouble, describeServer } from '../database-trouble.ts';
import { examineConnections } from './examine-connections.ts';
import { examineListen } from './examine-listen.ts';
import { examineSchema } from './examine-schema.ts';
import { attempt, ok, problem, skipped, warning, type Finding } from './finding.ts';

type ServerFacts = Readonly<{
  version: number;
  versionText: string;
  isReadOnly: boolean;
  isStandby: boolean;
}>;

const oldestVersion = 15;
const testedVersion = 17;
const skewSamples = 3;
const skewWarningMs = 1000;
const skewProblemMs = 5000;
const longTransaction = '5 minutes';

/** Looks at the configured database, in reading transactions only. */
export async function* examineDatabase(config: Config): AsyncGenerator<Finding> {
  const { database } = config;
  if (database.mode === 'embedded') {
    yield skipped(
      'database',
      `no database is configured, so \`redrive serve\` runs an embedded PostgreSQL in ${database.dataDir}; set database.host or DATABASE_URL to use your own`,
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
        trouble?.advice ?? 'see the message, and the log of PostgreSQL',
      );
      return;
    }
    yield reached(describeServer(database), facts);
    yield judgeVersion(facts.version, facts.versionText);
    yield await attempt('clock', async () => judgeClock(await measureSkew(db)));
    yield* examineSchema(db, config);
    yield await attempt('connections', () => examineConnections(db, config));
    yield await attempt('listen', () => examineListen(db, database));
    yield await attempt('transactions', () => examineTransactions(db));
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
    return rows[0] ?? new Error('the server answered nothing');
  } catch (error) {
    return error instanceof Error ? error : new Error(messageOf(error));
  }
}

function reached(server: string, { isReadOnly, isStandby }: ServerFacts): Finding {
  if (isStandby)
    return problem(
      'database',
      `${server}: a standby, which cannot be written to`,
      'name the primary in database.host',
    );
  if (isReadOnly)
    return problem(
      'database',
      `${server}: it cannot be written to`,
      'turn default_transaction_read_only off for the user and the database',
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
      `Redrive is tested on PostgreSQL ${testedVersion} and later: plan the upgrade`,
    );
  return problem('version', found, `use PostgreSQL ${testedVersion} or later`);
}

type Skew = Readonly<{ skewMs: number; roundTripMs: number }>;

/** The sample with the shortest way there and back says most: the answer was made somewhere on it. */
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

/** Leases use the database's clock alone, so a wrong clock here costs no message; timestamps would mislead. */
export function judgeClock({ skewMs, roundTripMs }: Skew): Finding {
  // What the way took could explain this much of the difference.
  const certainMs = Math.max(0, Math.abs(skewMs) - roundTripMs / 2);
  const direction = skewMs > 0 ? 'ahead of' : 'behind';
  const found = `this machine is ${(Math.abs(skewMs) / 1000).toFixed(3)} s ${direction} the database`;
  if (certainMs > skewProblemMs) return problem('clock', found, 'set both clocks by NTP');
  if (certainMs > skewWarningMs) return warning('clock', found, 'set both clocks by NTP');
  return ok('clock', found);
}

/** Old transactions keep dead rows from being cleaned up, which slows every claim down. */
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
    return ok('transactions', `none that is visible is older than ${longTransaction}`);
  const names = rows.map(
    ({ pid, application, state, minutes }) =>
      `pid ${pid} (${application || 'unnamed'}, ${state}, ${minutes} min)`,
  );
  return warning(
    'transactions',
    `open for more than ${longTransaction}: ${names.join(', ')}`,
    `they slow down every claim: end what is forgotten, with SELECT pg_terminate_backend(${oldest.pid})`,
  );
}
