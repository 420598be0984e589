import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';

/**
 * How many messages the person has sent or decided about in bulk within the last hour. Until the end of the transaction
 * no other one of the same person can ask, so that two redrives started at once count each other.
 */
export async function messagesOfLastHour(tx: Queryable, person: string): Promise<number> {
  await tx.query(sql`SELECT pg_advisory_xact_lock(hashtextextended(${`dlq.bulk_acts ${person}`}, 0))`);
  const [row] = await tx.query<{ messages: number }>(sql`
    SELECT COALESCE(sum(messages), 0)::float8 AS messages FROM dlq.bulk_acts
    WHERE person = ${person} AND at > clock_timestamp() - interval '1 hour'`);
  return row?.messages ?? 0;
}

export async function noteBulkAct(tx: Queryable, person: string, messages: number): Promise<void> {
  if (messages === 0) return;
  await tx.query(sql`
    DELETE FROM dlq.bulk_acts WHERE person = ${person} AND at <= clock_timestamp() - interval '1 hour'`);
  await tx.query(sql`INSERT INTO dlq.bulk_acts (person, messages) VALUES (${person}, ${messages})`);
}
