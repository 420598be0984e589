import assert from 'node:assert/strict';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from './eventually.ts';

/**
 * A pool that was ended has said goodbye, but its sessions last a moment longer. A database that is dropped before
 * they are over ends them with an error, which nobody listens to any more.
 */
export async function untilSessionsEnd(db: Database): Promise<void> {
  await eventually(async () => {
    const rows = await db.query(sql`
      SELECT application_name, query FROM pg_stat_activity
      WHERE datname = current_database() AND application_name <> 'redrive-test'`);
    assert.deepEqual(rows, []);
  });
}
