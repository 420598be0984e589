import type { Lease } from '../../kernel/lease.ts';
import { instantMs } from '../../kernel/timestamp.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { MAX_FAILED_ROUNDS } from '../domain/failed-rounds.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';
import { fromStored } from '../domain/workflow/workflow-hash.ts';
import type { LeasedSaga } from './leased-sagas.ts';
import { logHeads, logOrder, stateOf, type LogRow, type SagaRow } from '../saga-table.ts';

/** Not read after too many failed rounds: nothing is called any more, and the payload may be what crashes the process. */
export const payload: Sql = sql`CASE WHEN t.failed_rounds < ${MAX_FAILED_ROUNDS} THEN t.payload END`;

export type ClaimedRow = SagaRow &
  Readonly<{ now_ms: number; bytes: number; is_inline: boolean; woken_at: Date }>;

type Body = Pick<SagaRow, 'payload' | 'step_outputs'>;

export const bodyOf = ({ payload, step_outputs }: Body): Body => ({ payload, step_outputs });

export async function readBodies(
  db: Database,
  rows: readonly ClaimedRow[],
  epoch: bigint,
): Promise<ReadonlyMap<string, Body>> {
  const large = rows.filter((row) => !row.is_inline).map(({ id }) => id);
  if (large.length === 0) return new Map();
  const bodies = await db.query<Body & { id: string }>(sql`
    SELECT t.id, ${payload} AS payload, t.step_outputs
    FROM ${unnestRows(sql`large`, large, [[sql`id`, sql`uuid[]`, (id) => id]])}
    JOIN saga.saga_states t ON t.id = large.id AND t.lease_epoch = ${epoch}`);
  return new Map(bodies.map((body) => [body.id, body]));
}

/** Without responses: those of actions are in `step_outputs`, and those of undos are not needed. */
export async function readLogs(
  db: Database,
  rows: readonly ClaimedRow[],
): Promise<ReadonlyMap<string, readonly LogRow[]>> {
  const begun = rows.filter(({ status }) => status !== 'STARTED').map(({ id }) => id);
  if (begun.length === 0) return new Map();
  const logs = await db.query<LogRow>(sql`
    SELECT ${logHeads}
    FROM ${unnestRows(sql`begun`, begun, [[sql`id`, sql`uuid[]`, (id) => id]])}
    JOIN saga.saga_step_logs l ON l.saga_id = begun.id
    ORDER BY ${logOrder}`);
  return Map.groupBy(logs, (row) => row.saga_id);
}

export function leasedSaga(
  row: ClaimedRow,
  { workflow, lease, log }: Readonly<{ workflow: Workflow; lease: Lease; log: readonly LogRow[] }>,
): LeasedSaga {
  const answered = log.map((entry) => {
    if (entry.status === null || entry.action !== 'EXECUTE') return entry;
    return { ...entry, response_payload: row.step_outputs[workflow.steps[entry.step_index]?.name ?? ''] };
  });
  return {
    id: row.id,
    workflow,
    correlationId: row.correlation_id,
    payload: row.payload,
    startedAt: instantMs(row.created_at),
    trace: row.trace,
    state: stateOf(row, answered),
    wasLost: row.lease_lost,
    failedRounds: row.failed_rounds,
    runsAlone: row.runs_alone,
    bytes: row.bytes + log.reduce((sum, { error_message }) => sum + (error_message?.length ?? 0), 0),
    lease,
  };
}

export type Definitions = Readonly<{
  read(hashes: ReadonlySet<string>): Promise<ReadonlyMap<string, Workflow>>;
}>;

/** Definitions never change, so each is read once. */
export function createDefinitions(db: Database): Definitions {
  const known = new Map<string, Workflow>();
  return {
    async read(hashes) {
      const missing = [...hashes].filter((hash) => !known.has(hash));
      if (missing.length > 0) {
        const rows = await db.query<{ hash: string; definition: unknown }>(sql`
          SELECT hash, definition FROM saga.workflow_definitions WHERE hash = ANY(${missing}::text[])`);
        for (const { hash, definition } of rows) {
          const workflow = readDefinition(definition);
          if (workflow !== null) known.set(hash, workflow);
        }
      }
      return known;
    },
  };
}

/** Null if a newer version wrote it: its sagas are left to newer processes. */
function readDefinition(definition: unknown): Workflow | null {
  try {
    return fromStored(definition);
  } catch {
    return null;
  }
}
