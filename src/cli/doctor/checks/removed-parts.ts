import type { ProtectConfig } from '../../../config/resolve/resolve-protect.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { ok, skipped, warning, type Finding } from '../finding.ts';

const check = 'removed_parts';
/** Enough to know that there are such messages. */
const countTo = 100_000;

/** Messages that wait for an edit because a rule removed parts of them before they were stored. */
export async function examineRemovedParts(
  db: Queryable,
  { rules }: Pick<ProtectConfig, 'rules'>,
): Promise<Finding> {
  const [table] = await db.query<{ exists: boolean }>(sql`
    SELECT EXISTS (SELECT FROM pg_attribute a
      WHERE a.attrelid = to_regclass('dlq.dlq_messages') AND a.attname = 'removed_parts') AS exists`);
  if (table?.exists !== true) return skipped(check, 'not checked: migrations are pending');
  const removing = rules.filter(({ dropAtIngest }) => dropAtIngest === true).length;
  const [row] = await db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM (
      SELECT 1 FROM dlq.dlq_messages t
      WHERE t.status = 'PENDING' AND t.removed_parts && '{key,value,headers}' LIMIT ${countTo}) AS waiting`);
  const count = row?.count ?? 0;
  if (count > 0)
    return warning(
      check,
      `${count === countTo ? 'more than ' : ''}${count} pending messages cannot be retried: content was removed before they were stored`,
      'edit them to give it again, or give them up; see "drop_at_ingest" in the design paper on protection',
    );
  if (removing === 0) return skipped(check, 'nothing is removed at ingest');
  return ok(check, `${removing} rules with drop_at_ingest; no pending message waits for an edit`);
}
