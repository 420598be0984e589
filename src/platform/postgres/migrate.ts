import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { AppError } from '../../kernel/errors.ts';
import type { Database, Queryable } from './database.ts';
import { requireUtf8 } from './require-utf8.ts';
import { Sql, sql } from './sql.ts';

/**
 * Applies each slice's migrations in the order of the slices and of their numbers. Every migration runs in a
 * transaction of its own that takes one advisory lock and looks at the history again, so any number of
 * processes may start at once, also through a pooler in transaction mode: each step is done by exactly one of
 * them. The history keeps a checksum, so a migration that was changed after it was applied is noticed.
 */
export type Migration = Readonly<{
  slice: string;
  number: number;
  name: string;
  up: string;
  down: string;
  checksum: string;
}>;

export type MigrationSource = Readonly<{
  slice: string;
  directory: URL;
  /** How many migrations a database made by other means already has; those are noted, not run. */
  baseline?: (tx: Queryable) => Promise<number>;
}>;

export type MigrationStatus = Readonly<{
  slice: string;
  number: number;
  name: string;
  state: 'applied' | 'pending' | 'changed' | 'unknown';
  appliedAt: Date | null;
}>;

const lockKey = 7_233_004_117;
const patient = { isPatient: true };
const fileName = /^(\d{3})_([a-z0-9_]+)\.(up|down)\.sql$/;

export async function readMigrations(sources: readonly MigrationSource[]): Promise<readonly Migration[]> {
  const all = await Promise.all(sources.map(readSlice));
  return all.flat();
}

async function readSlice({ slice, directory }: MigrationSource): Promise<readonly Migration[]> {
  const files = (await readdir(directory)).filter((file) => file.endsWith('.up.sql')).toSorted();
  return Promise.all(
    files.map(async (file, i) => {
      const [, digits, name] = fileName.exec(file) ?? [];
      if (digits === undefined || name === undefined || Number(digits) !== i + 1)
        throw new Error(`migration out of order or badly named: ${slice}/${file}`);
      const up = await readFile(new URL(file, directory), 'utf8');
      const down = await readFile(new URL(file.replace('.up.', '.down.'), directory), 'utf8');
      return { slice, number: i + 1, name, up, down, checksum: checksumOf(up) };
    }),
  );
}

function checksumOf(text: string): string {
  return createHash('sha256').update(text.replaceAll('\r\n', '\n')).digest('hex');
}

type HistoryRow = { slice: string; number: number; name: string; checksum: string; applied_at: Date };

/** Applies what is pending, and returns it. */
export async function migrateUp(
  db: Database,
  sources: readonly MigrationSource[],
  onApplied: (migration: Migration) => void = () => {},
): Promise<readonly Migration[]> {
  const migrations = await readMigrations(sources);
  await requireUtf8(db);
  await db.transaction(async (tx) => {
    await lockMigrations(tx);
    await createHistory(tx);
    for (const source of sources) await noteBaseline(tx, source, migrations);
  }, patient);
  const applied: Migration[] = [];
  for (const migration of migrations) {
    const isNew = await db.transaction(async (tx) => {
      await lockMigrations(tx);
      if (await isApplied(tx, migration)) return false;
      await tx.query(verbatim(migration.up));
      await insertHistory(tx, migration);
      return true;
    }, patient);
    if (!isNew) continue;
    applied.push(migration);
    onApplied(migration);
  }
  return applied;
}

export type DownTarget = Readonly<{ slice: string; to: number }>;

/** The applied migrations that a rollback to `to` would take back, newest first. */
export async function plannedDown(
  db: Queryable,
  sources: readonly MigrationSource[],
  { slice, to }: DownTarget,
): Promise<readonly Migration[]> {
  const history = (await hasHistory(db)) ? await selectHistory(db) : [];
  const applied = new Set(history.filter((row) => row.slice === slice).map(({ number }) => number));
  const migrations = await readMigrations(sources);
  return migrations
    .filter((one) => one.slice === slice && one.number > to && applied.has(one.number))
    .toReversed();
}

/** Takes back migrations of one slice, newest first, down to (and not including) number `to`. */
export async function migrateDown(
  db: Database,
  sources: readonly MigrationSource[],
  target: DownTarget,
): Promise<readonly Migration[]> {
  const migrations = await readMigrations(sources);
  const reverted: Migration[] = [];
  for (const migration of migrations.filter((one) => one.slice === target.slice).toReversed()) {
    if (migration.number <= target.to) break;
    const wasApplied = await db.transaction(async (tx) => {
      await lockMigrations(tx);
      await createHistory(tx);
      if (!(await isApplied(tx, migration))) return false;
      await tx.query(verbatim(migration.down));
      await tx.query(
        sql`DELETE FROM platform.migrations WHERE slice = ${migration.slice} AND number = ${migration.number}`,
      );
      return true;
    }, patient);
    if (wasApplied) reverted.push(migration);
  }
  return reverted;
}

/** Every known migration, and those that only the database knows (a newer version was here). */
export async function migrationStatus(
  db: Queryable,
  sources: readonly MigrationSource[],
): Promise<readonly MigrationStatus[]> {
  const migrations = await readMigrations(sources);
  const history = (await hasHistory(db)) ? await selectHistory(db) : [];
  const rowOf = (slice: string, number: number): HistoryRow | undefined =>
    history.find((row) => row.slice === slice && row.number === number);
  const known = migrations.map(({ slice, number, name, checksum }): MigrationStatus => {
    const row = rowOf(slice, number);
    const state = row === undefined ? 'pending' : row.checksum === checksum ? 'applied' : 'changed';
    return { slice, number, name, state, appliedAt: row?.applied_at ?? null };
  });
  const unknown = history
    .filter((row) => !migrations.some((one) => one.slice === row.slice && one.number === row.number))
    .map(({ slice, number, name, applied_at }): MigrationStatus => {
      return { slice, number, name, state: 'unknown', appliedAt: applied_at };
    });
  return [...known, ...unknown];
}

/** A migration is text from our own files, run as it stands. */
function verbatim(text: string): Sql {
  return new Sql([text], []);
}

/** One process at a time changes the schema. */
export async function lockMigrations(tx: Queryable): Promise<void> {
  // A migration, and the wait for another process that runs one, take as long as they take.
  await tx.query(sql`SET LOCAL statement_timeout = 0`);
  await tx.query(sql`SELECT pg_advisory_xact_lock(${lockKey})`);
}

async function createHistory(tx: Queryable): Promise<void> {
  // Asked first: CREATE SCHEMA IF NOT EXISTS needs the right to create even where there is nothing to do.
  if (await hasHistory(tx)) return;
  await tx.query(sql`CREATE SCHEMA IF NOT EXISTS platform`);
  await tx.query(sql`
    CREATE TABLE platform.migrations (
      slice      TEXT        NOT NULL,
      number     INT         NOT NULL,
      name       TEXT        NOT NULL,
      checksum   TEXT        NOT NULL,
      applied_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (slice, number)
    )`);
}

async function hasHistory(db: Queryable): Promise<boolean> {
  const rows = await db.query<{ found: boolean }>(
    sql`SELECT to_regclass('platform.migrations') IS NOT NULL AS found`,
  );
  return rows[0]?.found === true;
}

async function selectHistory(db: Queryable): Promise<readonly HistoryRow[]> {
  return db.query<HistoryRow>(sql`
    SELECT slice, number, name, checksum, applied_at FROM platform.migrations ORDER BY slice, number`);
}

async function noteBaseline(
  tx: Queryable,
  { slice, baseline }: MigrationSource,
  migrations: readonly Migration[],
): Promise<void> {
  if (baseline === undefined) return;
  const history = await selectHistory(tx);
  if (history.some((row) => row.slice === slice)) return;
  const upTo = await baseline(tx);
  for (const migration of migrations.filter((one) => one.slice === slice && one.number <= upTo))
    await insertHistory(tx, migration);
}

async function isApplied(tx: Queryable, migration: Migration): Promise<boolean> {
  const rows = await tx.query<{ checksum: string }>(sql`
    SELECT checksum FROM platform.migrations
    WHERE slice = ${migration.slice} AND number = ${migration.number}`);
  if (rows[0] === undefined) return false;
  if (rows[0].checksum !== migration.checksum)
    throw new AppError(
      'SYS_PLATFORM_MIGRATION_CHANGED',
      'internal',
      `migration was changed after it was applied: ${migration.slice}/${migration.number} ${migration.name}`,
    );
  return true;
}

async function insertHistory(tx: Queryable, { slice, number, name, checksum }: Migration): Promise<void> {
  await tx.query(sql`
    INSERT INTO platform.migrations (slice, number, name, checksum)
    VALUES (${slice}, ${number}, ${name}, ${checksum})`);
}
