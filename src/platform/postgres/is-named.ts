import {
  dimensions,
  type Dimension,
  type NameFilter,
  type NameFilters,
  type Visible,
} from '../../kernel/access/scope.ts';
import { likePattern } from '../../kernel/glob/like-pattern.ts';
import { joinSql, sql, type Sql } from './sql.ts';

/**
 * Whether the filters let the names in all columns through; NULL is a dimension without names. Says the same as
 * `passAll`.
 */
export function areAllNamed(columns: Readonly<Record<Dimension, Sql>>, filters: NameFilters): Sql {
  if (dimensions.every((dimension) => filters[dimension] === null)) return sql`true`;
  const all = dimensions.map((dimension) => columns[dimension]);
  const parts = dimensions.map(
    (dimension) =>
      sql`(${columns[dimension]} IS NULL OR ${areNamed(columns[dimension], filters[dimension])})`,
  );
  return sql`(COALESCE(${joinSql(all, sql`, `)}) IS NOT NULL AND ${joinSql(parts, sql` AND `)})`;
}

/** Whether the filter lets all names in the column through, an array with at least one. */
export function areNamed(column: Sql, names: NameFilter): Sql {
  if (names === null) return sql`true`;
  return sql`(cardinality(${column}) > 0 AND NOT EXISTS (
    SELECT 1 FROM unnest(${column}) AS one (name) WHERE NOT ${isNamed(sql`one.name`, names)}))`;
}

/** Whether the filter lets the name in the column through; says the same as `passes`. */
export function isNamed(column: Sql, names: NameFilter): Sql {
  if (names === null) return sql`true`;
  if (names.length === 0) return sql`false`;
  const alternatives = names.map((lists) =>
    joinSql(
      lists.map((globs) => sql`${column} LIKE ANY(${globs.map(likePattern)}::text[])`),
      sql` AND `,
    ),
  );
  return sql`(${joinSql(alternatives, sql` OR `)})`;
}

/** Whether a list shows the row: because of its name, or because it is the caller's own. */
export function isVisible(
  { names, own }: Visible,
  row: Readonly<{ name: Sql; isOf: (subject: string) => Sql }>,
): Sql {
  const byName = isNamed(row.name, names);
  if (names === null || own === null) return byName;
  const asOwn = sql`(${row.isOf(own.subject)} AND ${isNamed(row.name, own.names)})`;
  return names.length === 0 ? asOwn : sql`(${byName} OR ${asOwn})`;
}
