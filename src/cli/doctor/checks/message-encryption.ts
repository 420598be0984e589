import type { ProtectConfig } from '../../../config/resolve/resolve-protect.ts';
import { likePattern } from '../../../kernel/glob/like-pattern.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { listKeys } from '../../../platform/protect/manage-keys.ts';
import type { MasterKey } from '../../../platform/protect/master-key.ts';
import { ok, problem, skipped, warning, type Finding } from '../finding.ts';

const check = 'message_encryption';
/** Enough to know that there are such messages. */
const countTo = 100_000;

/** Data keys that cannot be unwrapped, and messages of encrypted topics that are stored in the clear. */
export async function examineMessageEncryption(
  db: Queryable,
  { protect, master }: Readonly<{ protect: ProtectConfig; master: MasterKey | null }>,
): Promise<Finding> {
  const [table] = await db.query<{ exists: boolean }>(sql`
    SELECT to_regclass('platform.data_keys') IS NOT NULL AS exists`);
  if (table?.exists !== true) return skipped(check, 'not checked: migrations are pending');
  const keys = await listKeys({ db, master });
  const { topics } = protect.encrypt;
  if (keys.length === 0 && topics.length === 0) return skipped(check, 'no topics are encrypted');
  const unusable = keys.filter(({ trouble }) => trouble !== null);
  if (unusable.length > 0)
    return problem(
      check,
      `${unusable.length} of ${keys.length} data keys cannot be used: ${unusable[0]?.trouble}`,
      'give back the master key that wrapped them: see the runbook, "Encrypted messages cannot be read"',
    );
  const plain = topics.length === 0 ? 0 : await countPlain(db, topics);
  if (plain > 0)
    return warning(
      check,
      `${plain === countTo ? 'more than ' : ''}${plain} messages of encrypted topics, live or archived, are stored in the clear`,
      'they are from before encryption, or were inserted by SQL: retry, delete or archive and purge them',
    );
  return ok(check, `${keys.length} data keys can be used; ${topics.length} patterns of topics`);
}

async function countPlain(db: Queryable, topics: readonly string[]): Promise<number> {
  const patterns = topics.map(likePattern);
  const [row] = await db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM (
      SELECT 1 FROM (
        SELECT data_key, original_topic, source_topic FROM dlq.dlq_messages
        UNION ALL
        SELECT data_key, original_topic, source_topic FROM dlq.dlq_messages_archive) AS t
      WHERE t.data_key IS NULL
        AND (t.original_topic LIKE ANY(${patterns}::text[]) OR t.source_topic LIKE ANY(${patterns}::text[]))
      LIMIT ${countTo}) AS plain`);
  return row?.count ?? 0;
}
