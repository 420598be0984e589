import { createFingerprinter, fingerprintVersion } from '../../kernel/fingerprint/fingerprint.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Payloads } from '../domain/payloads.ts';
import { keepUpdatedAt } from '../messages-table.ts';
import { storeBases } from '../fingerprints-table.ts';

export type Derived = Readonly<{
  /** Messages whose fingerprint changed. */
  changed: number;
  /** Messages that were locked, not there any more or could not be decrypted when their batch was read. */
  skipped: number;
}>;

const batchSize = 500;
/** What a fingerprint reads of a stack at most. */
const stackLength = 65_536;

/**
 * Derives the fingerprints again that are missing or of another version, of live and of archived messages. It goes
 * through the tables by id, a short transaction per batch, and never waits for a locked row; a second run finds what
 * the first one left. The counts of the groups move in the same transaction. For the rest of the system nothing has
 * happened: neither `updated_at` nor the epoch changes, and a running retry settles as before.
 */
export async function deriveFingerprints(
  deps: Readonly<{ db: Database; payloads: Payloads }>,
  onBatch: (done: number) => void = () => {},
): Promise<Derived> {
  const { db, payloads } = deps;
  const total = { changed: 0, skipped: 0 };
  for (const table of [sql`dlq.dlq_messages`, sql`dlq.dlq_messages_archive`]) {
    for (let after: string | null = null; ;) {
      const ids: readonly string[] = await listStale(db, table, after);
      const last = ids.at(-1);
      if (last === undefined) break;
      const changed = await db.transaction((tx) => deriveBatch(tx, { table, payloads }, ids));
      total.changed += changed;
      total.skipped += ids.length - changed;
      after = last;
      onBatch(total.changed);
    }
  }
  return total;
}

function isStale(): Sql {
  return sql`(t.fingerprint IS NULL OR NOT starts_with(t.fingerprint, ${`v${fingerprintVersion}:`}))`;
}

async function listStale(db: Queryable, table: Sql, after: string | null): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(sql`
    SELECT t.id FROM ${table} t
    WHERE ${isStale()} AND ${after === null ? sql`true` : sql`t.id > ${after}`}
    ORDER BY t.id
    LIMIT ${batchSize}`);
  return rows.map(({ id }) => id);
}

type StaleRow = {
  id: string;
  error_message: string;
  error_class: string | null;
  error_stack: string | null;
  is_sealed: boolean;
};

async function deriveBatch(
  tx: Queryable,
  { table, payloads }: Readonly<{ table: Sql; payloads: Payloads }>,
  ids: readonly string[],
): Promise<number> {
  await keepUpdatedAt(tx);
  const rows = await tx.query<StaleRow>(sql`
    SELECT t.id, left(t.error_message, 16384) AS error_message, t.error_class,
           CASE WHEN t.data_key IS NULL THEN left(t.error_stack, ${stackLength}) ELSE t.error_stack END AS error_stack,
           t.data_key IS NOT NULL AS is_sealed
    FROM ${table} t WHERE t.id = ANY(${ids}::uuid[]) AND ${isStale()}
    FOR NO KEY UPDATE SKIP LOCKED`);
  const fingerprint = createFingerprinter();
  const opened = await payloads.open(
    rows.map(({ id, is_sealed: isSealed, error_stack: stack }) => ({ id, isSealed, parts: { stack } })),
  );
  const made = rows.flatMap((row, i) => {
    const parts = opened[i]?.parts;
    // Without its stack it would get another fingerprint.
    if (!parts) return [];
    return {
      id: row.id,
      ...fingerprint({
        errorClass: row.error_class ?? undefined,
        errorMessage: row.error_message,
        errorStack: parts.stack?.slice(0, stackLength),
      }),
    };
  });
  await storeBases(tx, new Map(made.map((one) => [one.fingerprint, one.basis])));
  await tx.query(sql`
    UPDATE ${table} t SET fingerprint = n.fingerprint
    FROM unnest(${made.map(({ id }) => id)}::uuid[], ${made.map((one) => one.fingerprint)}::text[]) AS n (id, fingerprint)
    WHERE t.id = n.id`);
  return made.length;
}
