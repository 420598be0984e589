import assert from 'node:assert/strict';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { changeRow } from '../../platform/work/shared-row.ts';
import { notify } from '../../platform/work/wake.ts';
import type { Circuit } from '../domain/circuit.ts';
import type { Throttle } from '../../kernel/targets/throttle.ts';
import type { DestinationState, DestinationStateStore, StateReading } from './shared-state.ts';
import { outboxChannel } from '../channel.ts';

/** A destination that never throttled or failed has no row. */
export function createPostgresDestinationState(db: Database): DestinationStateStore {
  return {
    async states(destinations) {
      const rows = await db.query<StateRow & { name: string }>(sql`
        SELECT names.name, clock_timestamp() AS now, ${stateColumns}
        FROM unnest(${destinations}::text[]) AS names (name)
        LEFT JOIN outbox.destination_state s ON s.destination = names.name`);
      return new Map(rows.map((row) => [row.name, readingOf(row)]));
    },

    async change(destination, decide) {
      let version = 0n;
      const changed = await changeRow(
        db,
        {
          async lock(tx) {
            const reading = readingOf(await lockState(tx, destination));
            ({ version } = reading);
            return { ...reading, isStored: version > 0n };
          },
          insert: (tx) => insertState(tx, destination),
          async write(tx, state, before) {
            version = await updateState(tx, destination, state);
            const isTurn = (before.circuit === null) !== (state.circuit === null);
            if (isTurn) await notify(tx, outboxChannel(destination));
          },
          isSame: (one, other) => one.throttle === other.throttle && one.circuit === other.circuit,
        },
        decide,
      );
      assert.ok(changed);
      return { reading: { state: changed.after, version, nowMs: changed.nowMs }, result: changed.result };
    },
  };
}

type StateRow = {
  now: Date;
  /** Null, like all columns below, if there is no row. */
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

async function lockState(tx: Queryable, destination: string): Promise<StateRow> {
  const [row] = await tx.query<StateRow>(sql`
    SELECT clock_timestamp() AS now, ${stateColumns}
    FROM (SELECT) AS always
    LEFT JOIN (
      SELECT * FROM outbox.destination_state WHERE destination = ${destination} FOR UPDATE
    ) s ON true`);
  assert.ok(row);
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
  assert.ok(row);
  return row.version;
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

/** Whole milliseconds, rounded up: no stored time is earlier than the decided one. */
function dateOf(atMs: number | null | undefined): Date | null {
  return atMs === null || atMs === undefined ? null : new Date(Math.ceil(atMs));
}
