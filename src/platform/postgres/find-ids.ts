import type { NameFilter, OwnItems } from '../../kernel/access/scope.ts';
import type { UuidRange } from '../../kernel/uuid-prefix.ts';
import type { Queryable } from './database.ts';
import { isVisible } from './is-named.ts';
import { joinSql, sql, type Sql } from './sql.ts';

/** A table with a UUID as primary key, a status and the time of creation. */
export type TableWithIds = Readonly<{
  table: Sql;
  id: Sql;
  /** Default: `status`. */
  status?: Sql;
  isArchive: boolean;
  /** The column that scopes are about; without it nobody with a narrowed role sees the table. */
  name?: Sql;
  /** Whether the subject created or holds the item; without it nobody has own items. */
  isOf?: (subject: string) => Sql;
  /** Instead of `name`, for items with several names. */
  isInScope?: (names: NameFilter) => Sql;
}>;

type FoundRow = { id: string; status: string; createdAt: Date; isArchived: boolean };

const isNever = (): Sql => sql`false`;

/** The first items in a range of ids. Each table is read through its primary key, and only as far as the limit. */
export function findIds(
  db: Queryable,
  tables: readonly TableWithIds[],
  { first, last }: UuidRange,
  { limit, names = null, own = null }: Readonly<{ limit: number; names?: NameFilter; own?: OwnItems | null }>,
): Promise<readonly FoundRow[]> {
  const isShown = ({ name = sql`NULL::text`, isOf = isNever, isInScope }: TableWithIds): Sql =>
    isInScope?.(names) ?? isVisible({ names, own }, { name, isOf });
  const ranges = tables.map((one) => {
    const { table, id, status = sql`status`, isArchive } = one;
    return sql`(
      SELECT t.${id} AS id, t.${status}::text AS status, t.created_at, ${isArchive}::boolean AS is_archived
      FROM ${table} t
      WHERE t.${id} BETWEEN ${first}::uuid AND ${last}::uuid AND ${isShown(one)}
      ORDER BY t.${id}
      LIMIT ${limit})`;
  });
  return db.query<FoundRow>(sql`
    SELECT id, status, created_at AS "createdAt", is_archived AS "isArchived"
    FROM (${joinSql(ranges, sql` UNION ALL `)}) AS found
    ORDER BY id
    LIMIT ${limit}`);
}
