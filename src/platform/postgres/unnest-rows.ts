import { joinSql, sql, type Sql } from './sql.ts';

/** A column: its name, its array type, and its value in a row. */
export type Column<Row> = readonly [name: Sql, arrayType: Sql, value: (row: Row) => unknown];

/**
 * Rows as a table for a FROM clause, with one array parameter per column. The planner does not see how many rows there
 * are: it expects a few, and looks up joined rows by their key. One subquery hides all arrays; one per array would take
 * longer to plan than the rest of the statement. Do not use it for a sorted `FOR UPDATE` of many rows, which copies all
 * arrays with each row.
 */
export function unnestRows<Row>(alias: Sql, rows: readonly Row[], columns: readonly Column<Row>[]): Sql {
  const comma = sql`, `;
  const names = columns.map(([name]) => name);
  const arrays = columns.map(([name, type, value], i) => {
    const values = rows.map(value);
    // unnest fills shorter arrays with NULL, so a column of NULLs is sent empty. The first column has all rows.
    const isNothing = i > 0 && values.every((one) => one === null);
    return sql`${isNothing ? '{}' : arrayText(values)}::${type} AS all_${name}`;
  });
  return sql`(SELECT ${joinSql(arrays, comma)} OFFSET 0) AS ${alias}_arrays
    CROSS JOIN LATERAL unnest(${joinSql(
      names.map((name) => sql`${alias}_arrays.all_${name}`),
      comma,
    )}) AS ${alias} (${joinSql(names, comma)})`;
}

/** An array literal of PostgreSQL; the driver's conversion takes several times as long. */
function arrayText(values: readonly unknown[]): string {
  let text = '{';
  for (let i = 0; i < values.length; i += 1) text += (i === 0 ? '' : ',') + elementText(values[i]);
  return `${text}}`;
}

function elementText(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (value === null || value === undefined) return 'NULL';
  if (value instanceof Date) return `"${value.toISOString()}"`;
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean')
    return String(value);
  throw new TypeError(`a column of rows cannot have a ${typeof value}`);
}

const special = /["\\]/;

function quoted(text: string): string {
  return special.test(text) ? `"${text.replace(/["\\]/g, '\\$&')}"` : `"${text}"`;
}
