import type { Config } from '../../../config/config.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { ok, problem, warning, type Finding } from '../finding.ts';

/** Servers that speak PostgreSQL's protocol answer with a version of PostgreSQL, too. */
export async function examineFamily(db: Queryable, wake: Config['database']['wake']): Promise<Finding> {
  const rows = await db.query<{ version: string }>(sql`SELECT version()`);
  return judgeFamily(rows[0]?.version ?? '', wake);
}

export function judgeFamily(version: string, wake: Config['database']['wake']): Finding {
  if (/cockroach/i.test(version))
    return problem(
      'family',
      'CockroachDB: advisory locks do nothing there, so two processes would migrate at once',
      'use PostgreSQL 17 or later',
    );
  if (/yugabyte|-YB-/i.test(version) && wake === 'listen')
    return warning('family', 'YugabyteDB: notifications do not arrive', 'set database.wake to poll');
  return ok('family', /yugabyte|-YB-/i.test(version) ? 'YugabyteDB' : 'PostgreSQL');
}
