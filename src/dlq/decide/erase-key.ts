import { createHash } from 'node:crypto';
import type { Act } from '../../kernel/audit/act.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import { recordOperation } from '../../platform/audit/record-operation.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import { leaseIsOver } from '../../platform/work/work.ts';
import type { Payloads } from '../domain/payloads.ts';

/**
 * Erases everything that is stored of messages with a key: the messages, live and archived, encrypted or not, in whose
 * newest or any earlier version it is the key, with their versions, and what their history, redrives and notifications
 * quote of them. Where their records were read stays known, so that reading the topic again does not bring them back.
 *
 * It works in batches. Each is one transaction with its audit event; a process that dies leaves whole batches, and the
 * next run does the rest. A message that is being retried, or that another transaction has locked, is left and counted.
 */
export type EraseDeps = Readonly<{ db: Database; payloads: Payloads }>;

export type Erasure = Readonly<{ key: Buffer; act: Act }>;

export type Erased = Readonly<{
  operationId: string;
  messages: number;
  archived: number;
  /** Of redrives: they keep their outcome, and lose what was known of the key. */
  items: number;
  /** Still stored: being retried, locked, or beyond what one call does. */
  remaining: number;
  /** Where copies of the records may be: topics that they were read from or published to. */
  topics: readonly string[];
}>;

const batchSize = 200;
/** Of one call, which must end in time; the next one continues. */
const maxBatches = 50;
const maxTopics = 100;

/** How many messages an erasure would find now. */
export async function countErasable(deps: EraseDeps, key: Buffer): Promise<number> {
  const [row] = await deps.db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM (${storedWith(await lookupOf(deps, key))}) AS found`);
  return row?.count ?? 0;
}

export async function eraseKey(deps: EraseDeps, { key, act }: Erasure): Promise<Erased> {
  const lookup = await lookupOf(deps, key);
  // Neither the key nor a hash of it: with the hash, keys can be guessed.
  return recordOperation(
    deps.db,
    act,
    { resource: 'dlq/erasures' },
    {
      run: (operationId) => eraseAll(deps.db, { lookup, act, operationId }),
      endOf: ({ messages, archived, items, remaining, topics }) => ({
        items: messages + archived,
        detail: { messages, archived, redrive_items: items, remaining, topics },
      }),
    },
  );
}

type Lookup = Readonly<{ key: Buffer; sha256: Buffer; hmac: Buffer | null }>;
type Work = Readonly<{ lookup: Lookup; act: Act; operationId: string }>;

async function lookupOf({ payloads }: EraseDeps, key: Buffer): Promise<Lookup> {
  const hashes = await payloads.hashes();
  return {
    key,
    sha256: createHash('sha256').update(key).digest(),
    hmac: hashes === null ? null : hashes.ofKey(key),
  };
}

async function eraseAll(db: Database, work: Work): Promise<Erased> {
  const total = { messages: 0, archived: 0, items: 0 };
  const topics = new Set<string>();
  for (let batches = 0; batches < maxBatches; batches += 1) {
    const batch = await db.transaction((tx) => eraseBatch(tx, work));
    total.messages += batch.messages;
    total.archived += batch.archived;
    total.items += batch.items;
    for (const topic of batch.topics) if (topics.size < maxTopics) topics.add(topic);
    if (batch.messages + batch.archived === 0) break;
  }
  await eraseFilters(db, work.lookup);
  const [left] = await db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM (${storedWith(work.lookup)}) AS found`);
  return { operationId: work.operationId, ...total, remaining: left?.count ?? 0, topics: [...topics] };
}

type Batch = Readonly<{ messages: number; archived: number; items: number; topics: readonly string[] }>;

async function eraseBatch(tx: Queryable, work: Work): Promise<Batch> {
  const found = await tx.query<{ id: string; isArchived: boolean; topic: string }>(sql`
    SELECT t.id, false AS "isArchived", t.original_topic AS topic FROM dlq.dlq_messages t
    WHERE t.id IN (${storedWith(work.lookup)}) AND (t.status <> 'RETRYING' OR ${leaseIsOver})
    ORDER BY t.id LIMIT ${batchSize} FOR UPDATE SKIP LOCKED`);
  const archived = await tx.query<{ id: string; isArchived: boolean; topic: string }>(sql`
    SELECT t.id, true AS "isArchived", t.original_topic AS topic FROM dlq.dlq_messages_archive t
    WHERE t.id IN (${storedWith(work.lookup)})
    ORDER BY t.id LIMIT ${batchSize} FOR UPDATE SKIP LOCKED`);
  const ids = [...found, ...archived].map(({ id }) => id);
  if (ids.length === 0) return { messages: 0, archived: 0, items: 0, topics: [] };
  const topics = await topicsOf(tx, ids);
  await deleteMessages(tx, ids);
  const items = await eraseTraces(tx, work.act, ids);
  await recordAct(tx, work.act, {
    resource: 'dlq/erasures',
    names: { topics: [...new Set([...found, ...archived].map(({ topic }) => topic))] },
    operationId: work.operationId,
    items: ids.length,
    detail: { part: true, messages: found.length, archived: archived.length, redrive_items: items },
  });
  return { messages: found.length, archived: archived.length, items, topics };
}

/** By the index; messages that are not indexed yet are read. Facets may be of a key from before an edit. */
function storedWith({ key, sha256, hmac }: Lookup): Sql {
  const hashes = hmac === null ? [sha256] : [sha256, hmac];
  const isKey = (column: Sql, row: Sql): Sql =>
    hmac === null
      ? sql`${row}.${column} = ${key}::bytea`
      : sql`(${row}.${column} = ${key}::bytea OR ${row}.key_hmac = ${hmac}::bytea)`;
  const tables = [
    [sql`dlq.dlq_messages`, sql`dlq.message_facets`],
    [sql`dlq.dlq_messages_archive`, sql`dlq.message_facets_archive`],
  ] as const;
  const statements = tables.flatMap(([table, facets]) => [
    sql`
      SELECT m.id FROM ${facets} f JOIN ${table} m ON m.id = f.message_id
      WHERE f.key_hash = ANY(${hashes}::bytea[]) AND ${isKey(sql`message_key`, sql`m`)}`,
    sql`
      SELECT m.id FROM dlq.index_queue q CROSS JOIN unnest(q.message_ids) AS queued (id)
      JOIN ${table} m ON m.id = queued.id WHERE ${isKey(sql`message_key`, sql`m`)}`,
    sql`
      SELECT m.id FROM dlq.message_versions v JOIN ${table} m ON m.id = v.message_id
      WHERE ${isKey(sql`key`, sql`v`)}`,
  ]);
  return joinSql(statements, sql` UNION `);
}

async function topicsOf(tx: Queryable, ids: readonly string[]): Promise<readonly string[]> {
  const rows = await tx.query<{ topic: string }>(sql`
    SELECT DISTINCT topic FROM (
      SELECT source_topic AS topic FROM dlq.dlq_messages WHERE id = ANY(${ids}::uuid[])
      UNION ALL
      SELECT source_topic FROM dlq.dlq_messages_archive WHERE id = ANY(${ids}::uuid[])
      UNION ALL
      SELECT h.topic FROM dlq.message_history h
      WHERE h.message_id = ANY(${ids}::uuid[]) AND h.event IN ('published', 'publish_unknown', 'came_back')
    ) AS copies
    WHERE topic IS NOT NULL ORDER BY topic LIMIT ${maxTopics}`);
  return rows.map(({ topic }) => topic);
}

/** Their versions and what is indexed of them go with them. */
async function deleteMessages(tx: Queryable, ids: readonly string[]): Promise<void> {
  for (const table of [sql`dlq.dlq_messages`, sql`dlq.dlq_messages_archive`])
    await tx.query(sql`
      WITH removed AS (
        DELETE FROM ${table} WHERE id = ANY(${ids}::uuid[])
        RETURNING id, source_topic_id, source_partition, source_offset
      )
      INSERT INTO dlq.arrivals (topic_id, partition, "offset", message_id, kind)
      SELECT source_topic_id, source_partition, source_offset, id, 'deleted'
      FROM removed
      WHERE source_topic_id IS NOT NULL
      ON CONFLICT DO NOTHING`);
}

/** What other tables quote of the messages: errors and hashes. Returns how many redrive items there were. */
async function eraseTraces(tx: Queryable, act: Act, ids: readonly string[]): Promise<number> {
  await tx.query(sql`
    WITH gone AS (
      DELETE FROM dlq.message_history WHERE message_id = ANY(${ids}::uuid[]) RETURNING id, message_id, original_topic
    )
    INSERT INTO dlq.message_history
      (message_id, event, actor, reason, retry_count, attempt_no, lease_epoch, original_topic)
    SELECT erased.id, 'erased', ${act.actor.id}, ${act.reason}, 0, 0, 0,
           (SELECT gone.original_topic FROM gone
            WHERE gone.message_id = erased.id AND gone.original_topic IS NOT NULL ORDER BY gone.id DESC LIMIT 1)
    FROM unnest(${ids}::uuid[]) AS erased (id)`);
  await tx.query(sql`
    UPDATE platform.notify_events SET summary = 'erased'
    WHERE slice = 'dlq' AND item_id = ANY(${ids}::text[])`);
  const items = await tx.query(sql`
    UPDATE dlq.redrive_items
    SET key_hash = NULL, sha256 = NULL, reason = CASE WHEN reason IS NOT NULL THEN 'erased' END
    WHERE message_id = ANY(${ids}::uuid[]) RETURNING 1`);
  return items.length;
}

/** Redrives that were asked for by the key. A plan that is being made still needs it. */
async function eraseFilters(db: Queryable, { key }: Lookup): Promise<void> {
  const text = key.toString('utf8');
  if (!Buffer.from(text).equals(key) || text.includes('\0')) return;
  await db.query(sql`
    UPDATE dlq.redrives SET filter = jsonb_set(filter, '{key}', '"(erased)"')
    WHERE filter->>'key' = ${text} AND state <> 'planning'`);
}
