import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { openOne, type Payloads } from '../domain/payloads.ts';
import { recordSha256 } from '../domain/record-sha256.ts';
import { recordValue } from '../messages-table.ts';
import { storeHeaders, type StoredHeader } from '../stored-headers.ts';
import type { Changes } from './edit-message.ts';

/** What an edit writes: the parts as they are stored, and how the message is found if it is encrypted. */
export type StoredChanges = Readonly<{
  key?: Buffer | null;
  value?: Buffer | null;
  headers?: readonly StoredHeader[] | null;
  /** The columns data_key, key_hmac and record_hmac of the new version. */
  hashes: Sql;
  isSealed: boolean;
}>;

/**
 * Encrypts the changes of an encrypted message. This is done before the transaction, because a key may have to be fetched:
 * the entity tag of the edit ensures that the message is still the same then. Its record is read for its hash; parts that
 * do not change stay as they are.
 */
export async function sealChanges(
  { db, payloads }: Readonly<{ db: Queryable; payloads: Payloads }>,
  id: string,
  changes: Changes,
): Promise<StoredChanges> {
  const stored = withStoredHeaders(changes);
  const [row] = await db.query<{ is_sealed: boolean }>(sql`
    SELECT t.data_key IS NOT NULL AS is_sealed FROM dlq.dlq_messages t WHERE t.id = ${id}`);
  if (row?.is_sealed !== true) return { ...stored, hashes: sql`NULL, NULL, NULL`, isSealed: false };

  const sealer = await payloads.sealer();
  const sealed = sealer.seal(id, stored);
  const { key, value } = changes;
  if (key === undefined && value === undefined)
    return { ...sealed, hashes: sql`${sealer.keyId}::int, t.key_hmac, t.record_hmac`, isSealed: true };
  const old = await readRecord({ db, payloads }, id);
  const record = { key: key === undefined ? old.key : key, value: value === undefined ? old.value : value };
  const keyHash = record.key === null ? null : sealer.ofKey(record.key);
  const recordHash = sealer.ofRecord(recordSha256(record.key, record.value));
  return {
    ...sealed,
    hashes: sql`${sealer.keyId}::int, ${keyHash}::bytea, ${recordHash}::bytea`,
    isSealed: true,
  };
}

function withStoredHeaders({ key, value, headers }: Changes) {
  return {
    ...(key === undefined ? {} : { key }),
    ...(value === undefined ? {} : { value }),
    ...(headers === undefined ? {} : { headers: headers.length === 0 ? null : storeHeaders(headers) }),
  };
}

async function readRecord(
  { db, payloads }: Readonly<{ db: Queryable; payloads: Payloads }>,
  id: string,
): Promise<Readonly<{ key: Buffer | null; value: Buffer | null }>> {
  const [row] = await db.query<{ key: Buffer | null; value: Buffer | null }>(sql`
    SELECT t.message_key AS key, ${recordValue} AS value FROM dlq.dlq_messages t WHERE t.id = ${id}`);
  return openOne(payloads, { id, isSealed: true, parts: row ?? { key: null, value: null } });
}
