import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';

/**
 * The bytes of a batch as a table of one row with the column `bytes`. Small blobs are a parameter. The driver makes three
 * copies of a parameter, so large ones are written to a table in parts, in the transaction that needs them.
 */
export type StagedBlob = Readonly<{
  table: Sql;
  /** Null if the bytes are a parameter. */
  staging: Readonly<{ put(tx: Queryable): Promise<void>; remove(tx: Queryable): Promise<void> }> | null;
}>;

const partBytes = 1 << 20;
/** Up to this size copies are cheaper than a transaction. */
const parameterBytes = 16 << 20;

export function stageBlob(parts: readonly Buffer[], makeId: () => string): StagedBlob {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  if (length <= parameterBytes)
    return { table: sql`(SELECT ${Buffer.concat(parts, length)}::bytea AS bytes)`, staging: null };
  const id = makeId();
  return {
    table: sql`(SELECT string_agg(bytes, ''::bytea ORDER BY n) AS bytes FROM dlq.value_parts WHERE id = ${id})`,
    staging: {
      async put(tx) {
        let n = 0;
        for (const part of parts)
          for (let at = 0; at < part.length; at += partBytes) {
            const piece = part.subarray(at, at + partBytes);
            await tx.query(
              sql`INSERT INTO dlq.value_parts (id, n, bytes) VALUES (${id}, ${n}, ${piece}::bytea)`,
            );
            n += 1;
          }
      },
      async remove(tx) {
        await tx.query(sql`DELETE FROM dlq.value_parts WHERE id = ${id}`);
      },
    },
  };
}
