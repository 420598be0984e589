import { sql, type Sql } from '../platform/postgres/sql.ts';

/**
 * A timestamp as milliseconds since 1970. The text form depends on the session's DateStyle, and the driver cannot parse
 * all of them. Infinite timestamps, and those outside the years 1 to 9999, become the nearest one inside, because ISO
 * 8601 has no others.
 */
export function epochMs(instant: Sql): Sql {
  return sql`CASE WHEN ${instant} IS NOT NULL THEN
    LEAST(GREATEST(floor(extract(epoch FROM ${instant}) * 1000), -62135596800000), 253402300799999)::float8 END`;
}

/** With microseconds, in a form that PostgreSQL parses: for cursors. Infinite timestamps have only their name. */
export function exactInstant(instant: Sql): Sql {
  return sql`CASE WHEN isfinite(${instant})
    THEN to_char(${instant} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
    ELSE ${instant}::text END`;
}

export function dateOrNull(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
