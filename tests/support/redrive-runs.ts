import { randomUUID } from 'node:crypto';
import { clearPayloads } from '../../src/dlq/domain/payloads.ts';
import type { RedriveKind } from '../../src/dlq/domain/redrive-kind.ts';
import type { RedriveState } from '../../src/dlq/domain/redrive.ts';
import type { LeasedRedrive, RedriveOptions } from '../../src/dlq/redrive/planned/redrives-table.ts';
import type { RunDeps } from '../../src/dlq/redrive/planned/run-redrive.ts';
import type { Publish } from '../../src/dlq/redrive/publish-claimed.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createSoloGate } from '../../src/platform/work/solo-gate.ts';
import { createTestWorker } from './worker.ts';

export type RedriveToLease = Readonly<{
  kind?: RedriveKind;
  state?: RedriveState;
  options?: Partial<RedriveOptions>;
}>;

/** A redrive that this test has leased, as a process that runs or plans redrives does. */
export async function leaseRedrive(db: Database, given: RedriveToLease = {}): Promise<LeasedRedrive> {
  const { kind = 'retry', state = 'running' } = given;
  const id = randomUUID();
  const options: RedriveOptions = { rate_per_second: null, order: 'key', ...given.options };
  const [row] = await db.query<{ epoch: bigint }>(sql`
    INSERT INTO dlq.redrives (id, kind, state, filter, options, actor, reason, lease_epoch)
    VALUES (${id}, ${kind}, ${state}, '{}', ${JSON.stringify(options)}::jsonb, 'alice', 'fixed',
            nextval('platform.lease_epochs'))
    RETURNING lease_epoch AS epoch`);
  const lease = { owner: 'worker-1', epoch: row?.epoch ?? 0n, endsAtMs: Infinity };
  const isPlanned = state !== 'planning';
  return { id, kind, state, filter: {}, options, actor: 'alice', reason: 'fixed', isPlanned, lease };
}

/** Writes an item for every stored message, in their order. */
export async function planItems(db: Database, { id }: Pick<LeasedRedrive, 'id'>): Promise<void> {
  await db.query(sql`
    INSERT INTO dlq.redrive_items (redrive_id, position, message_id, planned_epoch, target, key_hash)
    SELECT ${id}::uuid, row_number() OVER (ORDER BY created_at, id), id, lease_epoch, original_topic, sha256(message_key)
    FROM dlq.dlq_messages`);
}

/** What it takes to run a redrive, without a server. */
export function runDeps(db: Database, publish: Publish, more: Partial<RunDeps> = {}): RunDeps {
  return {
    db,
    worker: createTestWorker(db),
    payloads: clearPayloads,
    leaseMs: 30_000,
    publish,
    publishTimeoutMs: 1000,
    republishKey: 'original',
    republishCompression: 'source',
    stripFailureHeaders: (headers) => headers,
    isDeadLetterTopic: (topic) => topic.endsWith('.dlq'),
    isAllowedTarget: () => true,
    findHead: async () => null,
    gate: createSoloGate(),
    routesOf: () => ({ unroutable: null, misnamed: null }),
    onAttempt: () => {},
    onSettleRetry: () => {},
    outageMs: 600_000,
    broker: null,
    ...more,
  };
}
