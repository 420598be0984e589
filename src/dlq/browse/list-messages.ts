import { envelopeBytes } from '../../kernel/protect/envelope.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { epochMs, exactInstant } from '../instant.ts';
import { clearPayloads, type Payloads } from '../domain/payloads.ts';
import { indexedUntil, type MessageFilter } from '../message-filter.ts';
import type { Keyset, Message } from '../stored-message.ts';
import { countMessages, type Count } from './count-matches.ts';
import { findCandidates, type Candidates } from './message-candidates.ts';
import { messageColumns, messagesOf, previewBytes, type MessageRow } from './message-row.ts';

export type ListWindow =
  | Readonly<{ by: 'number'; offset: number; pageSize: number }>
  | Readonly<{ by: 'keyset'; after: Keyset | null; pageSize: number }>;

export type MessagePage = Readonly<{
  messages: readonly Message[];
  count: Count;
  hasNext: boolean;
  /** The last message that was checked, if the time was up before the page was full. */
  scannedUntil: Keyset | null;
  /** Messages stored before it were found by the fields that the indexer writes. */
  indexedUntil: Date;
}>;

/** How many candidates one statement checks: at first few, for a page that is soon full. */
const stepSizes = [1000, 5000] as const;
/** A list that checks its messages one by one ends after this time, with what it has found. */
const scanMs = 2000;

export type ListOptions = Readonly<{
  /** Payloads as a list shows them: whole up to 64 KiB, or their beginning and size. */
  payload?: 'whole' | 'preview';
  scanMs?: number;
  payloads?: Payloads;
}>;

/** One page, newest first, with the total. Reads one row more than the page to know whether there is a next one. */
export async function listMessages(
  db: Queryable,
  filter: MessageFilter,
  window: ListWindow,
  options: ListOptions = {},
): Promise<MessagePage> {
  const candidates = await findCandidates(db, filter);
  const count = await countMessages(db, filter, candidates);
  const offset = window.by === 'number' ? window.offset : 0;
  if (offset >= count.total && window.by === 'number' && !count.isEstimate) {
    const [row] = await db.query<{ at: number }>(sql`SELECT ${epochMs(indexedUntil)} AS at`);
    return { messages: [], count, hasNext: false, scannedUntil: null, indexedUntil: new Date(row?.at ?? 0) };
  }
  const after = window.by === 'keyset' ? window.after : null;
  const wanted = { skip: offset, limit: window.pageSize + 1, after };
  const { rows, scannedUntil, indexedUntilMs } = await scan(db, candidates, wanted, options);
  const { payloads = clearPayloads } = options;
  const messages = await messagesOf(payloads, rows.slice(0, window.pageSize));
  const hasNext = rows.length > window.pageSize || scannedUntil !== null;
  return { messages, count, hasNext, scannedUntil, indexedUntil: new Date(indexedUntilMs) };
}

type Wanted = Readonly<{ skip: number; limit: number; after: Keyset | null }>;
type Scanned = Readonly<{
  rows: readonly MessageRow[];
  scannedUntil: Keyset | null;
  indexedUntilMs: number;
}>;

/** Checks candidates in steps until the page is full, no candidate is left or the time is up. */
async function scan(
  db: Queryable,
  candidates: Candidates,
  wanted: Wanted,
  options: ListOptions,
): Promise<Scanned> {
  const endMs = performance.now() + (options.scanMs ?? scanMs);
  const rows: MessageRow[] = [];
  let { skip, after } = wanted;
  let indexedUntilMs = Infinity;
  for (let step = 0; ; step += 1) {
    const limit = wanted.limit - rows.length;
    const size = candidates.rest.length === 0 ? skip + limit : (stepSizes[Math.min(step, 1)] ?? limit);
    const found = await db.query<StepRow>(stepStatement(candidates, { skip, limit, after, size }, options));
    const [first] = found;
    rows.push(...found.filter(isMessageRow));
    indexedUntilMs = Math.min(indexedUntilMs, first?.indexed_until ?? 0);
    if (first === undefined || rows.length >= wanted.limit || first.scanned < BigInt(size))
      return { rows, scannedUntil: null, indexedUntilMs };
    skip -= Math.min(skip, Number(first.matched));
    after = { createdAt: first.last_created_at, id: first.last_id };
    if (performance.now() >= endMs) return { rows, scannedUntil: after, indexedUntilMs };
  }
}

type StepRow = (MessageRow | Readonly<{ id: null }>) &
  Readonly<{
    scanned: bigint;
    matched: bigint;
    last_created_at: string;
    last_id: string;
    indexed_until: number;
  }>;

function isMessageRow(row: StepRow): row is StepRow & MessageRow {
  return row.id !== null;
}

/**
 * Checks the next candidates and reads those that match, in one statement, so that a message which changes meanwhile is
 * not shown as it was. Always returns a row, so that the end of the step is known even if nothing matches.
 */
function stepStatement(
  { tables, read }: Candidates,
  { skip, limit, after, size }: Wanted & Readonly<{ size: number }>,
  { payload = 'whole' }: ListOptions,
): Sql {
  return sql`
    WITH candidates AS MATERIALIZED (${read({ limit: size, after })}
    ), page AS MATERIALIZED (
      SELECT id, created_at FROM candidates WHERE is_match
      ORDER BY created_at DESC, id DESC LIMIT ${limit} OFFSET ${skip}
    ), step AS (
      SELECT count(*) AS scanned, count(*) FILTER (WHERE is_match) AS matched, ${indexedUntil} AS indexed_until
      FROM candidates
    )
    SELECT ${messageColumns}, ${payload === 'whole' ? listedTexts : previewTexts},
           ${tables.isArchive} AS is_archived, step.scanned, step.matched,
           ${exactInstant(sql`last.created_at`)} AS last_created_at, last.id AS last_id,
           ${epochMs(sql`step.indexed_until`)} AS indexed_until
    FROM step
    LEFT JOIN (SELECT created_at, id FROM candidates ORDER BY created_at, id LIMIT 1) AS last ON true
    LEFT JOIN (page JOIN ${tables.messages} t ON t.id = page.id) ON true
    ${payload === 'whole' ? sql`` : ownBytes}
    ORDER BY page.created_at DESC, page.id DESC`;
}

/** Lists omit larger payloads and keys, and cut longer errors: a page stays below 7 MB. */
const listedPayloadBytes = 65_536;
const listedKeyBytes = 1024;
const listedErrorLength = 2000;

/**
 * Measures the JSON text: the column is compressed, and PostgreSQL writes numbers without exponents. The length of
 * the raw value is checked first because reading it decompresses nothing.
 */
const isListed: Sql = sql`(
  COALESCE(octet_length(t.raw_value), 0) <= ${listedPayloadBytes} AND t.data_key IS NULL
  AND platform.json_bytes(t.payload) <= ${listedPayloadBytes})`;

const isKeyListed: Sql = sql`octet_length(t.message_key) <= ${listedKeyBytes}`;

const shortTexts: Sql = sql`
  left(t.error_message, ${listedErrorLength}) AS error_message, NULL AS error_stack,
  CASE WHEN ${isKeyListed} THEN t.message_key END AS message_key, COALESCE(NOT ${isKeyListed}, false) AS is_key_omitted`;

/** What is encrypted has to be read whole, even for its beginning. */
const sealedValue: Sql = sql`
  CASE WHEN t.data_key IS NOT NULL AND octet_length(t.raw_value) <= ${listedPayloadBytes + envelopeBytes}
       THEN t.raw_value END AS sealed_value`;

const listedTexts: Sql = sql`
  ${shortTexts}, ${sealedValue},
  CASE WHEN ${isListed} THEN t.payload::text END AS payload_text,
  t.payload IS NOT NULL OR (t.data_key IS NOT NULL AND t.raw_value IS NOT NULL) AS has_payload`;

/**
 * The beginning of the value and its size: of the stored bytes, or of the JSON where there are none. Writing out the
 * JSON may take long, so that it happens once, and only for payloads that a list would show whole.
 */
const previewTexts: Sql = sql`
  ${shortTexts}, ${sealedValue}, NULL AS payload_text, false AS has_payload,
  COALESCE(own.bytes, octet_length(t.raw_value) - CASE WHEN t.data_key IS NULL THEN 0 ELSE ${envelopeBytes}::int END) AS value_bytes,
  CASE WHEN t.data_key IS NOT NULL THEN NULL
       WHEN own.bytes <= ${listedPayloadBytes}
       THEN substring(convert_to(left(t.payload::text, ${previewBytes}), 'UTF8') FROM 1 FOR ${previewBytes})
       ELSE substring(t.raw_value FROM 1 FOR ${previewBytes}) END AS value_start`;

const ownBytes: Sql = sql`
  LEFT JOIN LATERAL (
    SELECT platform.json_bytes(t.payload) AS bytes WHERE t.source_topic IS NULL OFFSET 0
  ) AS own ON true`;
