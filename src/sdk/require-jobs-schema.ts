import { codeOf } from '../kernel/errors.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';
import { notMigrated } from './transaction.ts';

/** The migrations that a worker of this version needs. A newer database will do: it stays good for older workers. */
export const neededMigrations = { platform: 4, jobs: 10 } as const;

const noSuchTable: ReadonlySet<string> = new Set(['3F000', '42P01']);

/** Said in words before the first job: otherwise each statement would fail again and again. */
export async function requireJobsSchema(db: Queryable): Promise<void> {
  let rows: readonly Readonly<{ slice: string; number: number }>[];
  try {
    rows = await db.query<{ slice: string; number: number }>(sql`
      SELECT slice, max(number) AS number FROM platform.migrations GROUP BY slice`);
  } catch (error) {
    throw noSuchTable.has(codeOf(error) ?? '') ? notMigrated('jobs', error) : error;
  }
  for (const [slice, needed] of Object.entries(neededMigrations)) {
    const has = rows.find((row) => row.slice === slice)?.number ?? 0;
    if (has < needed) throw notMigrated(slice === 'jobs' ? 'jobs' : `schema "${slice}"`);
  }
}
