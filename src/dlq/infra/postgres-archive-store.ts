import type { Database } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { ArchiveStore } from '../usecase/ports.ts';

/** Runs the procedures that an operator can also call by hand, and reads the counts from their notices. */
export function createPostgresArchiveStore(db: Database): ArchiveStore {
  return {
    archive: async (retentionDays) =>
      countIn(await db.call(sql`CALL dlq.archive_old_dlq_messages(${retentionDays}::int)`)),
    purge: async (purgeDays) =>
      countIn(await db.call(sql`CALL dlq.purge_archived_dlq_messages(${purgeDays}::int)`)),
    async compactCounts() {
      await db.query(sql`SELECT dlq.compact_topic_counts()`);
    },
  };
}

function countIn(notices: readonly string[]): number {
  const [, digits] = /^(?:Archived|Purged) (\d+) /.exec(notices.at(-1) ?? '') ?? [];
  return Number(digits ?? 0);
}
