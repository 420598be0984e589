import { joinSql, sql, type Sql } from './sql.ts';

/** A column: its name, the type of its array, and what a row has there. */
export type Column<Row> = readonly [name: Sql, arrayType: Sql, value: (row: Row) => unknown];

/**
 * Values as a table for a FROM clause, one array parameter per column. The planner does not see how many rows there
 * are: it expects a few, and looks up what they are joined to by its key.
 */
export function rowsOf<Row>(alias: Sql, rows: readonly Row[], columns: readonly Column<Row>[]): Sql {
  const comma = sql`, `;
  const arrays = columns.map(([, type, value]) => sql`(SELECT ${rows.map(value)}::${type})`);
  const names = columns.map(([name]) => name);
  return sql`unnest(${joinSql(arrays, comma)}) AS ${alias} (${joinSql(names, comma)})`;
}
