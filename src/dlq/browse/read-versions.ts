import { createHash } from 'node:crypto';
import { AppError } from '../../kernel/errors.ts';
import { envelopeBytes } from '../../kernel/protect/envelope.ts';
import type { ByteRange } from '../../platform/http/byte-range.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { openOne, type Payloads } from '../domain/payloads.ts';
import { epochMs } from '../instant.ts';
import { recordValue } from '../messages-table.ts';
import { readHeaders, type StoredHeader } from '../stored-headers.ts';
import { messageNotFound, type MessageBody } from '../stored-message.ts';

/** Who made a version, and what it is, without its bytes. */
export type VersionFacts = Readonly<{
  version: number;
  target: string;
  actor: string;
  reason: string | null;
  createdAt: Date;
}>;

export type VersionSummary = VersionFacts &
  Readonly<{
    keyBytes: number | null;
    valueBytes: number | null;
    headerCount: number;
  }>;

export type WholeVersion = VersionFacts & MessageBody;

/** Two versions as they are compared: large parts are left out. */
export type ComparedVersion = Omit<VersionSummary, 'headerCount'> &
  Readonly<{
    key: Buffer | null;
    keySha256: Buffer | null;
    valueSha256: Buffer | null;
    value: Buffer | null;
    headers: MessageBody['headers'] | null;
  }>;

/** Known without reading the value: it may be too large to be read. */
const uneditedBytes: Sql = sql`
  CASE WHEN t.source_topic IS NULL THEN platform.json_bytes(t.payload) ELSE octet_length(t.raw_value) END`;

/** An edited value has its hash in the table. */
const hashedBytes = 64 << 20;

/** The versions of a message, live or archived. One that was never edited has only its row. */
function versionsOf(id: string): Sql {
  const unedited = (table: Sql): Sql => sql`
    SELECT 0, t.message_key, ${recordValue}, ${uneditedBytes},
           CASE WHEN ${uneditedBytes} <= ${hashedBytes} THEN sha256(${recordValue}) END, t.headers, t.original_topic,
           'ingest', NULL, t.created_at, t.data_key IS NOT NULL
    FROM ${table} t WHERE t.id = ${id} AND t.version = 0`;
  return sql`(
    SELECT version, key, value, octet_length(value), value_sha256, headers, target, actor, reason, created_at,
           data_key IS NOT NULL
    FROM dlq.message_versions WHERE message_id = ${id}
    UNION ALL ${unedited(sql`dlq.dlq_messages`)}
    UNION ALL ${unedited(sql`dlq.dlq_messages_archive`)}
  ) AS v (version, key, value, bytes, value_sha256, headers, target, actor, reason, created_at, is_sealed)`;
}

/** By how much the stored bytes are longer than the record's. */
const sealing: Sql = sql`(CASE WHEN v.is_sealed THEN ${envelopeBytes}::int ELSE 0 END)`;

type FactsRow = Omit<VersionFacts, 'createdAt'> & Readonly<{ createdMs: number }>;

const facts: Sql = sql`
  v.version, v.target, v.actor, v.reason, ${epochMs(sql`v.created_at`)} AS "createdMs"`;

function factsOf<Row extends FactsRow>({ createdMs, ...row }: Row) {
  return { ...row, createdAt: new Date(createdMs) };
}

/** Oldest first. */
export async function listVersions(db: Queryable, id: string): Promise<readonly VersionSummary[]> {
  const rows = await db.query<FactsRow & Omit<VersionSummary, 'createdAt'>>(sql`
    SELECT ${facts}, octet_length(v.key) - ${sealing} AS "keyBytes", (v.bytes - ${sealing})::int AS "valueBytes",
           COALESCE(CASE WHEN v.is_sealed THEN (v.headers->0->>'count')::int
                         ELSE jsonb_array_length(v.headers) END, 0) AS "headerCount"
    FROM ${versionsOf(id)}
    ORDER BY v.version`);
  if (rows.length === 0) throw messageNotFound(id);
  return rows.map(factsOf);
}

/** Of the bytes of a record in an answer: Base64, plus the text if it is text. */
export const recordFactor = 2.5;

/** The number of the newest version. */
export async function newestVersion(db: Queryable, id: string): Promise<number> {
  const [row] = await db.query<{ version: number | null }>(sql`
    SELECT max(version) AS version FROM (
      SELECT t.version FROM dlq.dlq_messages t WHERE t.id = ${id}
      UNION ALL
      SELECT t.version FROM dlq.dlq_messages_archive t WHERE t.id = ${id}) AS found`);
  if (row?.version === undefined || row.version === null) throw messageNotFound(id);
  return row.version;
}

/** How many bytes its record has; 0 if there is no such version. */
export async function measureVersion(db: Queryable, id: string, version: number): Promise<number> {
  const [row] = await db.query<{ bytes: bigint }>(sql`
    SELECT COALESCE(octet_length(v.key), 0)::bigint + COALESCE(v.bytes, 0)
             + COALESCE(pg_column_size(v.headers), 0) AS bytes
    FROM ${versionsOf(id)}
    WHERE v.version = ${version}`);
  return Number(row?.bytes ?? 0n);
}

type BodyRow = Readonly<{
  key: Buffer | null;
  value: Buffer | null;
  headers: readonly StoredHeader[] | null;
}>;

export type VersionId = Readonly<{ id: string; version: number }>;

export async function getVersion(
  db: Queryable,
  { id, version }: VersionId,
  payloads: Payloads,
): Promise<WholeVersion> {
  const [row] = await db.query<FactsRow & BodyRow & Sealable>(sql`
    SELECT ${facts}, v.key, v.value, v.headers, v.is_sealed AS "isSealed"
    FROM ${versionsOf(id)} WHERE v.version = ${version}`);
  if (row === undefined) throw versionNotFound(id, version);
  const { key, value, headers, isSealed, ...rest } = row;
  const opened = await openOne(payloads, { id, isSealed, parts: { key, value, headers } });
  return { ...factsOf(rest), key: opened.key, value: opened.value, headers: readHeaders(opened.headers) };
}

type Sealable = Readonly<{ isSealed: boolean }>;

/** The size of a version's value; null for null. A sealed one is read whole, whatever part of it is wanted. */
export type ValueSize = Readonly<{ bytes: number | null; isSealed: boolean }>;

export async function measureValue(db: Queryable, { id, version }: VersionId): Promise<ValueSize> {
  const [row] = await db.query<Sealable & Readonly<{ bytes: bigint | null }>>(sql`
    SELECT (v.bytes - ${sealing})::bigint AS bytes, v.is_sealed AS "isSealed"
    FROM ${versionsOf(id)} WHERE v.version = ${version}`);
  if (row === undefined) throw versionNotFound(id, version);
  return { bytes: row.bytes === null ? null : Number(row.bytes), isSealed: row.isSealed };
}

export async function readValue(
  db: Queryable,
  { id, version }: VersionId,
  { start, bytes }: ByteRange,
  payloads: Payloads,
): Promise<Buffer> {
  const [row] = await db.query<Sealable & Readonly<{ value: Buffer | null }>>(sql`
    SELECT CASE WHEN v.is_sealed THEN v.value ELSE substring(v.value FROM ${start + 1}::int FOR ${bytes}::int) END
             AS value, v.is_sealed AS "isSealed"
    FROM ${versionsOf(id)} WHERE v.version = ${version}`);
  if (row === undefined) throw versionNotFound(id, version);
  const { isSealed, value: stored } = row;
  const { value } = await openOne(payloads, { id, isSealed, parts: { value: stored } });
  if (value === null) throw versionNotFound(id, version);
  return isSealed ? value.subarray(start, start + bytes) : value;
}

/** Values up to this size are compared. */
export const comparedBytes = 2 << 20;
const comparedKeyBytes = 64 << 10;
const comparedHeaderBytes = 1 << 20;

type ComparedRow = FactsRow &
  Omit<ComparedVersion, 'createdAt' | 'headers'> &
  Readonly<{ headers: readonly StoredHeader[] | null; hasHeaders: boolean }>;

export async function getCompared(
  db: Queryable,
  { id, version }: VersionId,
  payloads: Payloads,
): Promise<ComparedVersion> {
  const [row] = await db.query<ComparedRow & Sealable>(sql`
    SELECT ${facts}, octet_length(v.key) - ${sealing} AS "keyBytes", sha256(v.key) AS "keySha256",
           CASE WHEN octet_length(v.key) - ${sealing} <= ${comparedKeyBytes} THEN v.key END AS key,
           (v.bytes - ${sealing})::int AS "valueBytes", v.value_sha256 AS "valueSha256",
           CASE WHEN v.bytes - ${sealing} <= ${comparedBytes} THEN v.value END AS value, v.is_sealed AS "isSealed",
           COALESCE(octet_length(v.headers::text), 0) <= ${comparedHeaderBytes} AS "hasHeaders",
           CASE WHEN octet_length(v.headers::text) <= ${comparedHeaderBytes} THEN v.headers END AS headers
    FROM ${versionsOf(id)} WHERE v.version = ${version}`);
  if (row === undefined) throw versionNotFound(id, version);
  const { hasHeaders, isSealed, ...rest } = row;
  const { key, value, headers } = await openOne(payloads, {
    id,
    isSealed,
    parts: { key: row.key, value: row.value, headers: row.headers },
  });
  return {
    ...factsOf(rest),
    key,
    value,
    headers: hasHeaders ? readHeaders(headers) : null,
    // Equal bytes are encrypted to different ones, so that hashes of these say nothing.
    ...(isSealed ? { keySha256: sha256Of(key), valueSha256: sha256Of(value) } : {}),
  };
}

function sha256Of(bytes: Buffer | null): Buffer | null {
  return bytes === null ? null : createHash('sha256').update(bytes).digest();
}

function versionNotFound(id: string, version: number): AppError {
  return new AppError('SYS_DLQ_NOT_FOUND', 'not_found', `dlq message ${id} has no version ${version}`);
}
