import { migrationStatus, readMigrations, type Migration, type MigrationSource } from '../migrate.ts';
import type { Queryable } from '../database.ts';
import { sql } from '../sql.ts';
import { callsOf, lockModes, locksOf, type Lock, type LockMode, type Work } from './locks-of.ts';

/** What `migrate up` would do to one table that exists. */
export type PlannedLock = Readonly<{
  table: string;
  mode: LockMode;
  /** Whom it keeps waiting until the migration commits. */
  blocks: 'reads and writes' | 'writes' | 'schema changes' | 'nobody';
  work: readonly Work[];
  /** Estimated by PostgreSQL; null if the table was never analyzed. */
  rows: number | null;
  bytes: number;
}>;

export type PlannedMigration = Readonly<{
  slice: string;
  number: number;
  name: string;
  locks: readonly PlannedLock[];
  /** Functions that it calls, whose locks are not among these. */
  calls: readonly string[];
  /** All locks are held until the end of the migration. An estimate, within an order of magnitude. */
  seconds: number;
}>;

/** The pending migrations in the order in which they would run. Reads the catalog only. */
export async function planMigrations(
  db: Queryable,
  sources: readonly MigrationSource[],
): Promise<readonly PlannedMigration[]> {
  const migrations = await readMigrations(sources);
  const status = await migrationStatus(db, sources);
  const isPending = ({ slice, number }: Migration): boolean =>
    status.some((one) => one.slice === slice && one.number === number && one.state === 'pending');
  const tables = await tablesOf(db);
  return migrations.filter(isPending).map(({ slice, number, name, up }) => {
    const locks = plannedLocks(locksOf(up), tables);
    const seconds = locks.reduce((sum, lock) => sum + secondsOf(lock), 0);
    return { slice, number, name, locks, calls: callsOf(up), seconds };
  });
}

type Table = Readonly<{
  name: string;
  rows: number | null;
  bytes: number;
  /** Indexes of the table, and domains of its columns. */
  parts: readonly string[];
}>;

async function tablesOf(db: Queryable): Promise<readonly Table[]> {
  return db.query<Table>(sql`
    SELECT n.nspname || '.' || c.relname AS name,
           CASE WHEN c.relkind = 'p' THEN sum_of.rows WHEN c.reltuples >= 0 THEN c.reltuples::float8 END AS rows,
           CASE WHEN c.relkind = 'p' THEN sum_of.bytes ELSE pg_table_size(c.oid)::float8 END AS bytes,
           ARRAY(SELECT n.nspname || '.' || i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
                 WHERE x.indrelid = c.oid
                 UNION
                 SELECT tn.nspname || '.' || t.typname FROM pg_attribute a
                 JOIN pg_type t ON t.oid = a.atttypid AND t.typtype = 'd'
                 JOIN pg_namespace tn ON tn.oid = t.typnamespace
                 WHERE a.attrelid = c.oid AND NOT a.attisdropped) AS parts
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL (
      SELECT sum(GREATEST(p.reltuples, 0))::float8 AS rows, sum(pg_table_size(p.oid))::float8 AS bytes
      FROM pg_partition_tree(c.oid) tree JOIN pg_class p ON p.oid = tree.relid) AS sum_of
    WHERE c.relkind IN ('r', 'p') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'`);
}

/** Per table that exists, with its strongest lock; nobody waits for a table that the migration creates. */
function plannedLocks(locks: readonly Lock[], tables: readonly Table[]): readonly PlannedLock[] {
  const isMeant = ({ relation, kind }: Lock, table: Table): boolean => {
    const plain = relation.replaceAll('"', '');
    return kind === 'table' ? table.name === plain : table.parts.includes(plain);
  };
  return tables.flatMap((table) => {
    const own = locks.filter((lock) => isMeant(lock, table));
    const strongest = own.reduce((most, { mode }) => Math.max(most, lockModes.indexOf(mode)), -1);
    const mode = lockModes[strongest];
    if (mode === undefined) return [];
    const work = own.map((lock) => lock.work).filter((one) => one !== 'catalog');
    return [{ table: table.name, mode, blocks: blockedBy[mode], work, rows: table.rows, bytes: table.bytes }];
  });
}

const blockedBy: Readonly<Record<LockMode, PlannedLock['blocks']>> = {
  'ROW EXCLUSIVE': 'nobody',
  'SHARE UPDATE EXCLUSIVE': 'schema changes',
  SHARE: 'writes',
  'SHARE ROW EXCLUSIVE': 'writes',
  'ACCESS EXCLUSIVE': 'reads and writes',
};

/** Modest values for one core and a network disk, so that the estimate is rather too long. */
const workRates = {
  scanBytesPerSecond: 200 * 1024 * 1024,
  rewriteBytesPerSecond: 40 * 1024 * 1024,
  indexRowsPerSecond: 400_000,
  changedRowsPerSecond: 40_000,
} as const;

/** A statement that changes only the catalog. */
const catalogSeconds = 0.01;

function secondsOf({ work, rows, bytes }: PlannedLock): number {
  // A row takes about this much where PostgreSQL has not counted.
  const count = rows ?? bytes / 500;
  const each: Readonly<Record<Work, number>> = {
    catalog: 0,
    scan: bytes / workRates.scanBytesPerSecond,
    index: bytes / workRates.scanBytesPerSecond + count / workRates.indexRowsPerSecond,
    rewrite: bytes / workRates.rewriteBytesPerSecond + count / workRates.indexRowsPerSecond,
    rows: count / workRates.changedRowsPerSecond,
  };
  return work.reduce((sum, one) => sum + each[one], catalogSeconds);
}
