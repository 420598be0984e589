import type { Queryable } from '../postgres/database.ts';
import { sql } from '../postgres/sql.ts';

export type StoredKey = Readonly<{ id: number; wrapped: string }>;

/** The newest keys that encrypt, newest first. */
export function selectNewest(
  db: Queryable,
  slice: string,
): Promise<readonly (StoredKey & Readonly<{ isOfThisMonth: boolean }>)[]> {
  return db.query(sql`
    SELECT id, wrapped, month >= date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC')::date AS "isOfThisMonth"
    FROM platform.data_keys
    WHERE slice = ${slice} AND purpose = 'payload'
    ORDER BY month DESC, turn DESC
    LIMIT 3`);
}

export function selectKeys(
  db: Queryable,
  slice: string,
  ids: readonly number[],
): Promise<readonly StoredKey[]> {
  return db.query<StoredKey>(sql`
    SELECT id, wrapped FROM platform.data_keys
    WHERE slice = ${slice} AND purpose = 'payload' AND id = ANY(${ids}::int[])`);
}

export async function selectLookupKey(db: Queryable, slice: string): Promise<StoredKey | undefined> {
  const [key] = await db.query<StoredKey>(sql`
    SELECT id, wrapped FROM platform.data_keys WHERE slice = ${slice} AND purpose = 'lookup'`);
  return key;
}

export async function selectKeyIds(db: Queryable, slice: string): Promise<readonly number[]> {
  const rows = await db.query<{ id: number }>(sql`
    SELECT id FROM platform.data_keys WHERE slice = ${slice} AND purpose = 'payload' ORDER BY id`);
  return rows.map(({ id }) => id);
}

/** The first key of the month; does nothing if another process was faster. */
export async function insertMonthKey(db: Queryable, slice: string, wrapped: string): Promise<void> {
  await db.query(sql`
    INSERT INTO platform.data_keys (slice, purpose, month, wrapped)
    VALUES (${slice}, 'payload', date_trunc('month', clock_timestamp() AT TIME ZONE 'UTC')::date, ${wrapped})
    ON CONFLICT DO NOTHING`);
}

export async function insertLookupKey(db: Queryable, slice: string, wrapped: string): Promise<void> {
  await db.query(sql`
    INSERT INTO platform.data_keys (slice, purpose, month, wrapped)
    VALUES (${slice}, 'lookup', '1970-01-01', ${wrapped})
    ON CONFLICT DO NOTHING`);
}
