import type { Queryable } from '../platform/postgres/database.ts';
import { sql, type Sql } from '../platform/postgres/sql.ts';
import type { AuditEvent, Seal } from './chain.ts';

/** Exact to the microsecond, in UTC, as it is hashed. */
export function instantText(column: Sql): Sql {
  return sql`to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
}

/** Every column: what is not hashed could be changed. */
export const eventColumns: Sql = sql`
  e.seq::float8 AS seq, ${instantText(sql`e.at`)} AS at, e.kept, e.actor_type, e.actor_id, e.actor_name, e.roles,
  e.action, e.outcome, e.reason, e.resource, e.topics, e.queues, e.destinations, e.workflows, e.operation_id,
  e.item_count, e.detail, e.request_id, e.trace_id, e.address, e.agent`;

/** The events of a range, in the order of their numbers. */
export async function selectRange(
  db: Queryable,
  { after, upTo, limit }: Readonly<{ after: number; upTo: number; limit: number }>,
): Promise<readonly AuditEvent[]> {
  return db.query<AuditEvent>(sql`
    SELECT ${eventColumns} FROM audit.events e
    WHERE e.seq > ${after}::bigint AND e.seq <= ${upTo}::bigint ORDER BY e.seq LIMIT ${limit}`);
}

export async function selectSeals(
  db: Queryable,
  { after, limit }: Readonly<{ after: number; limit: number }>,
): Promise<readonly Seal[]> {
  return db.query<Seal>(sql`
    SELECT ${sealColumns} FROM audit.seals s WHERE s.block > ${after}::bigint ORDER BY s.block LIMIT ${limit}`);
}

export async function selectLastSeal(db: Queryable): Promise<Seal | null> {
  const [seal] = await db.query<Seal>(sql`
    SELECT ${sealColumns} FROM audit.seals s ORDER BY s.block DESC LIMIT 1`);
  return seal ?? null;
}

/** The blocks of the last round, which were stored together. */
export function selectLastRound(db: Queryable): Promise<readonly Seal[]> {
  return db.query<Seal>(sql`
    SELECT ${sealColumns} FROM audit.seals s
    WHERE s.last_seq = (SELECT last.last_seq FROM audit.seals last ORDER BY last.block DESC LIMIT 1) ORDER BY s.block`);
}

const sealColumns: Sql = sql`
  s.block::float8 AS block, s.after_seq::float8 AS after_seq, s.last_seq::float8 AS last_seq, s.kept,
  to_char(s.month, 'YYYY-MM-DD') AS month, s.events, encode(s.rows_sha256, 'hex') AS rows_sha256,
  ${instantText(sql`s.sealed_at`)} AS sealed_at, encode(s.previous, 'hex') AS previous, encode(s.hash, 'hex') AS hash`;
