import type { Lease } from '../../kernel/lease.ts';
import { cleanText } from '../../kernel/text.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { heldRows, settle, type Worker } from '../../platform/postgres/work.ts';
import type { Status } from '../domain/message.ts';
import type { AttemptOutcome, Settled } from '../usecase/ports.ts';
import { messages, statusAfterFailure, tellOfDead } from './messages-table.ts';

/**
 * Ends the attempts of one claim, one statement per kind of end. Safe to repeat after a lost answer: a row
 * that already shows this epoch's end is settled, and a row that a returning dead letter reopened meanwhile
 * gets a line of history. Every other row that does not match was taken from us: a stale write, dropped and
 * counted.
 */
export async function settleAttempts(
  worker: Worker,
  attempt: Readonly<{ lease: Lease; outcomes: ReadonlyMap<string, AttemptOutcome>; actor: string }>,
): Promise<Settled> {
  const statuses = new Map<string, Status | null>();
  for (const kind of endKinds) {
    const ended = [...attempt.outcomes].filter(([, outcome]) => outcome.end === kind);
    if (ended.length === 0) continue;
    const rows = await settle<{ id: string; status: Status }>(worker.db, messages, {
      held: heldRows(
        messages,
        ended.map(([id]) => id),
        attempt.lease.epoch,
      ),
      count: ended.length,
      guard: sql`t.status = 'RETRYING'`,
      keepsLeaseLost: sql`${kind === 'released'}`,
      ...endOf(kind),
      returning: sql`t.id, t.original_topic, t.status, t.retry_count, t.attempt_no, t.lease_epoch`,
      also: noteEnd(kind, ended, attempt.actor),
    });
    for (const row of rows) statuses.set(row.id, row.status);
  }
  const unmatched = [...attempt.outcomes.keys()].filter((id) => !statuses.has(id));
  if (unmatched.length > 0) await explain(worker, attempt, { unmatched, statuses });
  return { statuses };
}

type EndKind = AttemptOutcome['end'];
const endKinds: readonly EndKind[] = ['published', 'not_published', 'failed', 'unknown', 'released'];

function endOf(kind: EndKind): Readonly<{ set: Sql }> {
  switch (kind) {
    case 'published':
    case 'not_published':
      return { set: sql`status = 'RESOLVED', resolution = ${kind}` };
    case 'failed':
    case 'unknown':
      return { set: sql`status = ${statusAfterFailure}` };
    case 'released':
      return { set: sql`status = 'PENDING', retry_count = t.retry_count - 1` };
  }
}

const events: Readonly<Record<EndKind, string>> = {
  published: 'published',
  not_published: 'resolved_unpublished',
  failed: 'publish_failed',
  unknown: 'publish_unknown',
  released: 'released',
};

type Ended = readonly (readonly [string, AttemptOutcome])[];

function noteEnd(kind: EndKind, ended: Ended, actor: string): Sql {
  const noted = sql`, ended AS (
      SELECT settled.*, how.partition, how."offset", how.detail
      FROM settled JOIN ${endedRows(ended)} AS how (id, partition, "offset", detail) ON how.id = settled.id
    ), noted AS (
      INSERT INTO dlq.message_history
        (message_id, event, actor, status_from, status_to, retry_count, attempt_no, lease_epoch,
         topic, partition, "offset", detail)
      SELECT id, ${events[kind]}, ${actor}, 'RETRYING', status, retry_count, attempt_no, lease_epoch,
             CASE WHEN ${kind} IN ('published', 'failed', 'unknown') THEN original_topic END,
             partition, "offset", detail
      FROM ended
    )`;
  return kind === 'failed' || kind === 'unknown' ? sql`${noted}${tellOfDead(sql`ended`)}` : noted;
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

async function explain(
  worker: Worker,
  {
    lease,
    outcomes,
    actor,
  }: Readonly<{
    lease: Lease;
    outcomes: ReadonlyMap<string, AttemptOutcome>;
    actor: string;
  }>,
  { unmatched, statuses }: Unmatched,
): Promise<void> {
  const rows = await selectUnmatched(worker.db, unmatched, lease.epoch);
  let stale = unmatched.length;
  for (const row of rows) {
    statuses.set(row.id, row.status);
    if (row.is_ours || row.came_back) stale -= 1;
    const outcome = outcomes.get(row.id);
    if (row.came_back && outcome !== undefined && outcome.end !== 'released')
      await insertLateEnd(worker.db, { row, outcome, actor, epoch: lease.epoch });
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

/** Ours: the row rests with our epoch, so our own settle got through and only its answer was lost. */
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

/** Once, however often the settle is repeated. */
async function insertLateEnd(
  db: Queryable,
  late: Readonly<{
    row: UnmatchedRow;
    outcome: AttemptOutcome;
    actor: string;
    epoch: bigint;
  }>,
): Promise<void> {
  const { row, outcome } = late;
  const at = outcome.end === 'published' ? outcome : { partition: null, offset: null };
  const detail = `ended after it had already come back as a dead letter${detailOf(outcome) === null ? '' : `: ${detailOf(outcome)}`}`;
  await db.query(sql`
    INSERT INTO dlq.message_history
      (message_id, event, actor, status_from, status_to, retry_count, attempt_no, lease_epoch,
       topic, partition, "offset", detail)
    SELECT ${row.id}::uuid, ${events[outcome.end]}, ${late.actor}, ${row.status}, ${row.status},
           ${row.retry_count}::int, ${row.attempt_no}::int, ${late.epoch}::bigint, ${row.original_topic},
           ${at.partition}::int, ${at.offset}::bigint, ${detail}
    WHERE NOT EXISTS (
      SELECT 1 FROM dlq.message_history
      WHERE message_id = ${row.id}::uuid AND event = ${events[outcome.end]}
        AND lease_epoch = ${late.epoch}::bigint)`);
}
