import { remainingMs, type Lease } from '../../kernel/lease.ts';
import type { Outcome } from '../../kernel/outcome.ts';
import { cleanText } from '../../kernel/text.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { insertUnknown } from '../../platform/audit/insert-unknown.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { storeBatch } from '../../platform/work/store-batch.ts';
import { reap, settle, type Worker } from '../../platform/work/work.ts';
import type { Status } from '../domain/message.ts';
import { recordEnd, type RecordedRetry } from './record-retry.ts';
import { messages, notifyDead, statusAfterFailure, unscheduled } from '../messages-table.ts';

export type SettleDeps = Readonly<{ worker: Worker; onSettleRetry: (error: unknown) => void }>;

/** How an attempt ended, for the row and for its history. */
export type AttemptOutcome = Outcome<
  Readonly<{ end: 'published'; partition: number; offset: bigint }> | Readonly<{ end: 'not_published' }>
>;

export const attemptEnds: readonly AttemptOutcome['end'][] = [
  'published',
  'not_published',
  'failed',
  'unknown',
  'released',
];

type Outcomes = ReadonlyMap<string, AttemptOutcome>;

/** The attempts of one claim. */
export type EndedAttempts = Readonly<{
  lease: Lease;
  outcomes: Outcomes;
  actor: string;
  /** For a retry of one message by a person; bulk retries are recorded as one act. */
  recorded?: RecordedRetry;
  /** What is written in the same transaction, whether or not the message's row still matched. */
  also?: Readonly<{
    transaction: Database['transaction'];
    write: (tx: Queryable, outcomes: Outcomes) => Promise<void>;
  }>;
}>;

/** Each row's status after the settle, even if another process wrote it; null if the row was deleted. */
export type SettledStatuses = ReadonlyMap<string, Status | null>;

/**
 * Settles the attempts of one claim. Retries until it is stored or the lease expires: until then nobody else touches
 * the rows, so repeating is safe. An outcome whose text the database rejects is stored without the text.
 */
export async function settleAttempts(deps: SettleDeps, attempts: EndedAttempts): Promise<SettledStatuses> {
  const { worker } = deps;
  const statuses = new Map<string, Status | null>();
  const store = async (outcomes: readonly (readonly [string, AttemptOutcome])[]): Promise<void> => {
    const settled = await settleWith(worker, { ...attempts, outcomes: new Map(outcomes) });
    for (const [id, status] of settled) statuses.set(id, status);
  };
  await storeBatch([...attempts.outcomes], {
    store,
    storeBad: ([id, outcome]) => store([[id, withoutText(outcome)]]),
    until: AbortSignal.timeout(Math.max(1, Math.ceil(remainingMs(attempts.lease, worker.clock)))),
    onRetry: deps.onSettleRetry,
  });
  return statuses;
}

async function settleWith(worker: Worker, attempts: EndedAttempts): Promise<SettledStatuses> {
  const { also, outcomes } = attempts;
  if (also === undefined) return settleOnce(worker, attempts);
  return also.transaction(async (tx) => {
    const statuses = await settleOnce({ ...worker, db: tx }, attempts);
    await also.write(tx, outcomes);
    return statuses;
  });
}

function withoutText(outcome: AttemptOutcome): AttemptOutcome {
  switch (outcome.end) {
    case 'failed':
    case 'unknown':
      return { ...outcome, error: 'the error text could not be stored' };
    case 'released':
      return { ...outcome, reason: 'the reason could not be stored' };
    case 'published':
    case 'not_published':
      return outcome;
  }
}

/**
 * One statement per kind of outcome. Safe to repeat after a lost response: a row that already shows this epoch's
 * outcome is settled, and a row that a returning dead letter reopened meanwhile gets a history entry. Every other row
 * that does not match was taken over: a stale write, which is dropped and counted.
 */
async function settleOnce(worker: Worker, attempts: EndedAttempts): Promise<SettledStatuses> {
  const statuses = new Map<string, Status | null>();
  for (const kind of endKinds) {
    const ended = [...attempts.outcomes].filter(([, outcome]) => outcome.end === kind);
    if (ended.length === 0) continue;
    const ids = ended.map(([id]) => id);
    const rows = await settle<{ id: string; status: Status }>(
      worker.db,
      { slice: messages.slice, count: ended.length },
      sql`
      WITH settled AS (
        UPDATE dlq.dlq_messages t
        SET ${endOf(kind)},
            lease_owner = NULL, lease_until = NULL, lease_lost = t.lease_lost AND ${kind === 'released'}
        FROM ${unnestRows(sql`attempt`, ids, [[sql`key`, sql`uuid[]`, (id) => id]])}
        WHERE t.id = attempt.key AND t.lease_epoch = ${attempts.lease.epoch} AND (t.status = 'RETRYING') IS TRUE
        RETURNING t.id, t.original_topic, t.status, t.retry_count, t.attempt_no, t.lease_epoch
      )${addHistory(kind, ended, attempts)}
      SELECT id, status FROM settled`,
    );
    for (const row of rows) statuses.set(row.id, row.status);
  }
  const unmatched = [...attempts.outcomes.keys()].filter((id) => !statuses.has(id));
  if (unmatched.length > 0) await explainUnmatched(worker, attempts, { unmatched, statuses });
  return statuses;
}

export type AttemptEnd = AttemptOutcome['end'];
const endKinds: readonly AttemptEnd[] = ['published', 'not_published', 'failed', 'unknown', 'released'];

function endOf(kind: AttemptEnd): Sql {
  switch (kind) {
    case 'published':
    case 'not_published':
      return sql`status = 'RESOLVED', resolution = ${kind}`;
    case 'failed':
    case 'unknown':
      return sql`status = ${statusAfterFailure}`;
    case 'released':
      return sql`status = 'PENDING', retry_count = t.retry_count - 1`;
  }
}

const events: Readonly<Record<AttemptEnd, string>> = {
  published: 'published',
  not_published: 'resolved_unpublished',
  failed: 'publish_failed',
  unknown: 'publish_unknown',
  released: 'released',
};

type Ended = readonly (readonly [string, AttemptOutcome])[];

function addHistory(
  kind: AttemptEnd,
  ended: Ended,
  { actor, recorded }: Pick<EndedAttempts, 'actor' | 'recorded'>,
): Sql {
  const noted = sql`, ended AS (
      SELECT settled.*, how.partition, how."offset", how.detail
      FROM settled JOIN ${endedRows(ended)} AS how (id, partition, "offset", detail) ON how.id = settled.id
    ), noted AS (
      INSERT INTO dlq.message_history
        (message_id, event, actor, status_from, status_to, retry_count, attempt_no, lease_epoch,
         topic, partition, "offset", detail, original_topic)
      SELECT id, ${events[kind]}, ${actor}, 'RETRYING', status, retry_count, attempt_no, lease_epoch,
             CASE WHEN ${kind} IN ('published', 'failed', 'unknown') THEN original_topic END,
             partition, "offset", detail, original_topic
      FROM ended
    )${recordEnd(recorded, kind)}`;
  return kind === 'failed' || kind === 'unknown' ? sql`${noted}${notifyDead(sql`ended`)}` : noted;
}

function endedRows(ended: Ended): Sql {
  return sql`unnest(
    ${ended.map(([id]) => id)}::uuid[],
    ${ended.map(([, outcome]) => (outcome.end === 'published' ? outcome.partition : null))}::int[],
    ${ended.map(([, outcome]) => (outcome.end === 'published' ? outcome.offset : null))}::bigint[],
    ${ended.map(([, outcome]) => detailOf(outcome))}::text[])`;
}

function detailOf(outcome: AttemptOutcome): string | null {
  if (outcome.end === 'failed' || outcome.end === 'unknown') return cleanText(outcome.error, 4000);
  return outcome.end === 'released' ? cleanText(outcome.reason, 4000) : null;
}

type Unmatched = Readonly<{ unmatched: readonly string[]; statuses: Map<string, Status | null> }>;

async function explainUnmatched(
  worker: Worker,
  { lease, outcomes, ...by }: EndedAttempts,
  { unmatched, statuses }: Unmatched,
): Promise<void> {
  const rows = await selectUnmatched(worker.db, unmatched, lease.epoch);
  let stale = unmatched.length;
  for (const row of rows) {
    statuses.set(row.id, row.status);
    if (row.is_ours || row.came_back) stale -= 1;
    const outcome = outcomes.get(row.id);
    if (row.came_back && outcome !== undefined && outcome.end !== 'released')
      await insertLateEnd(worker.db, { row, outcome, ...by, epoch: lease.epoch });
  }
  for (const id of unmatched) if (!statuses.has(id)) statuses.set(id, null);
  if (stale > 0) worker.onStale(messages.slice, stale);
}

type UnmatchedRow = {
  id: string;
  status: Status;
  original_topic: string;
  retry_count: number;
  attempt_no: number;
  is_ours: boolean;
  came_back: boolean;
};

/** `is_ours`: the row is settled with our epoch, so an earlier try was stored and only its response was lost. */
async function selectUnmatched(
  db: Queryable,
  ids: readonly string[],
  epoch: bigint,
): Promise<readonly UnmatchedRow[]> {
  return db.query<UnmatchedRow>(sql`
    SELECT t.id, t.status, t.original_topic, t.retry_count, t.attempt_no,
           t.lease_epoch = ${epoch} AND t.status <> 'RETRYING' AS is_ours,
           EXISTS (
             SELECT 1 FROM dlq.message_history h
             WHERE h.message_id = t.id AND h.event = 'came_back' AND h.lease_epoch = ${epoch}
           ) AS came_back
    FROM dlq.dlq_messages t
    WHERE t.id = ANY(${ids}::uuid[])`);
}

/** Added once, however often the settle is repeated. */
async function insertLateEnd(
  db: Queryable,
  late: Readonly<{
    row: UnmatchedRow;
    outcome: AttemptOutcome;
    epoch: bigint;
  }> &
    Pick<EndedAttempts, 'actor' | 'recorded'>,
): Promise<void> {
  const { row, outcome } = late;
  const at = outcome.end === 'published' ? outcome : { partition: null, offset: null };
  const detail = `ended after it came back as a dead letter${detailOf(outcome) === null ? '' : `: ${detailOf(outcome)}`}`;
  await db.query(sql`
    WITH ended AS (
      INSERT INTO dlq.message_history
        (message_id, event, actor, status_from, status_to, retry_count, attempt_no, lease_epoch,
         topic, partition, "offset", detail, original_topic)
      SELECT ${row.id}::uuid, ${events[outcome.end]}, ${late.actor}, ${row.status}, ${row.status},
             ${row.retry_count}::int, ${row.attempt_no}::int, ${late.epoch}::bigint, ${row.original_topic},
             ${at.partition}::int, ${at.offset}::bigint, ${detail}, ${row.original_topic}
      WHERE NOT EXISTS (
        SELECT 1 FROM dlq.message_history
        WHERE message_id = ${row.id}::uuid AND event = ${events[outcome.end]}
          AND lease_epoch = ${late.epoch}::bigint)
      RETURNING message_id AS id, status_to AS status, attempt_no, topic AS original_topic, partition, "offset", detail
    )${recordEnd(late.recorded, outcome.end)}
    SELECT id FROM ended`);
}

const reapBatch = 500;

/** Ends attempts whose lease expired, of one message or of all, as failures; returns how many, at most a batch. */
export async function reapAttempts(db: Queryable, id?: string): Promise<number> {
  const rows = await reap<{ id: string }>(db, messages, {
    where: id === undefined ? sql`t.status = 'RETRYING'` : sql`t.status = 'RETRYING' AND t.id = ${id}`,
    limit: reapBatch,
    set: sql`status = ${statusAfterFailure}, ${unscheduled}`,
    returning: sql`t.id, t.original_topic, t.status, t.retry_count, t.attempt_no, t.lease_epoch,
                   'the lease expired during the retry' AS detail`,
    also: sql`, noted AS (
      INSERT INTO dlq.message_history
        (message_id, event, actor, status_from, status_to, retry_count, attempt_no, lease_epoch, detail,
         original_topic)
      SELECT id, 'lease_expired', 'reaper', 'RETRYING', status, retry_count, attempt_no, lease_epoch, detail,
             original_topic
      FROM reaped
    ), lost AS (
      UPDATE dlq.redrive_items i
      SET outcome = 'unknown', reason = reaped.detail, settled_at = clock_timestamp()
      FROM reaped
      WHERE i.message_id = reaped.id AND i.claim_epoch IS NOT NULL AND i.outcome IS NULL
    ), recorded AS (${insertUnknown({
      from: sql`(SELECT 'dlq/messages/' || id, attempt_no, detail FROM reaped)`,
    })}
    )${notifyDead(sql`reaped`)}`,
  });
  return rows.length;
}
