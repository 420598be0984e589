import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/postgres/wake.ts';
import type { Circuit } from '../domain/circuit.ts';
import type { Throttle } from '../../kernel/throttle.ts';
import type { DestinationState, DestinationStateStore, StateReading } from '../usecase/shared-state.ts';
import { outboxChannel } from './outbox-channel.ts';

/**
 * The state that processes share about a destination. What changes it is decided by the domain, under a lock on the
 * row and at the time of the database's clock after that lock was granted; a decision that changes nothing writes
 * nothing, and a destination that never was in trouble has no row.
 */
export function createPostgresDestinationState(db: Database): DestinationStateStore {
  return {
    async states(destinations) {
      const rows = await db.query<StateRow & { name: string }>(sql`
        SELECT names.name, clock_timestamp() AS now, ${stateColumns}
        FROM unnest(${destinations}::text[]) AS names (name)
        LEFT JOIN outbox.destination_state s ON s.destination = names.name`);
      return new Map(rows.map((row) => [row.name, readingOf(row)]));
    },

    change: (destination, decide) =>
      db.transaction(async (tx) => {
        let before = readingOf(await lockState(tx, destination));
        let decision = decide(before.state, before.nowMs);
        if (isSame(before.state, decision.state)) return { reading: before, result: decision.result };
        if (before.version === 0n) {
          // There was nothing to lock: whoever came first decides first.
          await insertState(tx, destination);
          before = readingOf(await lockState(tx, destination));
          decision = decide(before.state, before.nowMs);
          if (isSame(before.state, decision.state)) return { reading: before, result: decision.result };
        }
        const { state, result } = decision;
        const version = await updateState(tx, destination, state);
        const hasTurned = (before.state.circuit === null) !== (state.circuit === null);
        if (hasTurned) await notify(tx, outboxChannel(destination));
        return { reading: { state, version, nowMs: before.nowMs }, result };
      }),
  };
}

type StateRow = {
  now: Date;
  /** Null, like all that follows, where there is no row. */
  version: bigint | null;
  rate: number | null;
  peak: number | null;
  cut_at: Date | null;
  hold_until: Date | null;
  window_at: Date | null;
  window_taken: number | null;
  opened_at: Date | null;
  open_reason: string | null;
  probe_interval_ms: number | null;
  next_probe_at: Date | null;
  last_probe_id: bigint | null;
};

const stateColumns: Sql = sql`
  s.version, s.rate, s.peak, s.cut_at, s.hold_until, s.window_at, s.window_taken,
  s.opened_at, s.open_reason, s.probe_interval_ms, s.next_probe_at, s.last_probe_id`;

/** The lock lies in a query of its own below: so the clock is read after it was granted. */
async function lockState(tx: Queryable, destination: string): Promise<StateRow> {
  const [row] = await tx.query<StateRow>(sql`
    SELECT clock_timestamp() AS now, ${stateColumns}
    FROM (SELECT) AS always
    LEFT JOIN (
      SELECT * FROM outbox.destination_state WHERE destination = ${destination} FOR UPDATE
    ) s ON true`);
  if (row === undefined) throw new Error('a left join gave no row');
  return row;
}

async function insertState(tx: Queryable, destination: string): Promise<void> {
  await tx.query(sql`
    INSERT INTO outbox.destination_state (destination) VALUES (${destination}) ON CONFLICT DO NOTHING`);
}

async function updateState(
  tx: Queryable,
  destination: string,
  { throttle, circuit }: DestinationState,
): Promise<bigint> {
  const [row] = await tx.query<{ version: bigint }>(sql`
    UPDATE outbox.destination_state
    SET rate = ${throttle?.rate}, peak = ${throttle?.peak}, cut_at = ${dateOf(throttle?.cutAtMs)},
        hold_until = ${dateOf(throttle?.holdUntilMs)},
        window_at = ${dateOf(throttle?.windowAtMs)}, window_taken = ${throttle?.windowTaken},
        opened_at = ${dateOf(circuit?.openedAtMs)}, open_reason = ${circuit?.reason},
        probe_interval_ms = ${circuit?.intervalMs}, next_probe_at = ${dateOf(circuit?.nextProbeAtMs)},
        last_probe_id = ${circuit?.lastProbeId},
        version = version + 1, updated_at = clock_timestamp()
    WHERE destination = ${destination}
    RETURNING version`);
  if (row === undefined) throw new Error('the row that was locked is gone');
  return row.version;
}

function isSame(one: DestinationState, other: DestinationState): boolean {
  return one.throttle === other.throttle && one.circuit === other.circuit;
}

function readingOf(row: StateRow): StateReading {
  return {
    state: { throttle: throttleOf(row), circuit: circuitOf(row) },
    version: row.version ?? 0n,
    nowMs: row.now.getTime(),
  };
}

function throttleOf(row: StateRow): Throttle | null {
  const { rate, peak, cut_at, window_at, window_taken } = row;
  if (rate === null || peak === null || cut_at === null || window_at === null || window_taken === null)
    return null;
  return {
    rate,
    peak,
    cutAtMs: cut_at.getTime(),
    holdUntilMs: row.hold_until?.getTime() ?? null,
    windowAtMs: window_at.getTime(),
    windowTaken: window_taken,
  };
}

function circuitOf(row: StateRow): Circuit | null {
  const { opened_at, open_reason, probe_interval_ms, next_probe_at } = row;
  if (opened_at === null || open_reason === null || probe_interval_ms === null || next_probe_at === null)
    return null;
  return {
    openedAtMs: opened_at.getTime(),
    reason: open_reason,
    intervalMs: probe_interval_ms,
    nextProbeAtMs: next_probe_at.getTime(),
    lastProbeId: row.last_probe_id,
  };
}

/** Whole milliseconds, rounded up: no time that was written comes earlier than it was decided. */
function dateOf(atMs: number | null | undefined): Date | null {
  return atMs === null || atMs === undefined ? null : new Date(Math.ceil(atMs));
}
