import type { ProbeTiming } from '../../kernel/targets/circuit.ts';
import { cleanText } from '../../kernel/text.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/work/wake.ts';
import { sagaChannel } from '../saga-table.ts';

/**
 * `saga.service_circuits`: a row exists while the circuit of a service is open, and after that until the sagas that
 * are stuck because of it were retried. The probe is a saga that waits for the service: one replica chooses it
 * (`wakeProbe`), whichever process claims it takes the probe (`takeProbe`), and `probe_until` is its lease.
 */
const timing: ProbeTiming = { initialMs: 5000, maxMs: 60_000 };

const maxReasonBytes = 500;
/** How long a chosen probe has to be claimed. */
const claimWithinMs = 15_000;
/** The probe is one of this many sagas at random: a single saga whose call always fails must not keep the circuit open. */
const probesFrom = 100;

function milliseconds(ms: number): Sql {
  return sql`${ms}::float8 * interval '1 millisecond'`;
}

export async function openServices(db: Queryable): Promise<readonly string[]> {
  const rows = await db.query<{ service: string }>(sql`
    SELECT service FROM saga.service_circuits WHERE is_open`);
  return rows.map(({ service }) => service);
}

/** An open circuit stays as it is. */
export async function openCircuit(db: Queryable, service: string, reason: string): Promise<void> {
  await db.query(sql`
    INSERT INTO saga.service_circuits AS c (service, reason, probe_at)
    VALUES (${service}, ${cleanText(reason, maxReasonBytes)}, clock_timestamp() + ${milliseconds(timing.initialMs)})
    ON CONFLICT (service) DO UPDATE
    SET is_open = true, since = EXCLUDED.since, reason = EXCLUDED.reason, probes = 0, probe_at = EXCLUDED.probe_at
    WHERE NOT c.is_open`);
}

export async function closeCircuit(db: Queryable, service: string): Promise<void> {
  await db.query(sql`
    UPDATE saga.service_circuits
    SET is_open = false, since = clock_timestamp(), reason = '', probe_saga = NULL, probe_until = NULL
    WHERE service = ${service} AND is_open`);
}

/** Whether this saga is the probe of the service; if so, it is the only one for this long. */
export async function takeProbe(
  db: Queryable,
  { service, sagaId, forMs }: Readonly<{ service: string; sagaId: string; forMs: number }>,
): Promise<boolean> {
  const rows = await db.query(sql`
    UPDATE saga.service_circuits SET probe_until = clock_timestamp() + ${milliseconds(forMs)}
    WHERE service = ${service} AND is_open AND probe_saga = ${sagaId} AND probe_until > clock_timestamp()
    RETURNING 1`);
  return rows.length > 0;
}

/** The saga is null if the probe was a connection. */
export type EndedProbe = Readonly<{ service: string; sagaId: string | null; end: 'failed' | 'unused' }>;

/** After a failed probe the next one is due later, after an unused one at once. Ignored if another saga is the probe. */
export async function endProbe(db: Queryable, { service, sagaId, end }: EndedProbe): Promise<void> {
  const isOurs =
    sagaId === null
      ? sql`(probe_until IS NULL OR probe_until <= clock_timestamp())`
      : sql`probe_saga = ${sagaId}`;
  const nextProbe = sql`
    , probes = probes + 1, probe_at = clock_timestamp()
      + LEAST(${timing.initialMs}::float8 * power(2, LEAST(probes + 1, 30)), ${timing.maxMs}::float8)
        * interval '1 millisecond'`;
  await db.query(sql`
    UPDATE saga.service_circuits
    SET probe_saga = NULL, probe_until = NULL ${end === 'failed' ? nextProbe : sql``}
    WHERE service = ${service} AND is_open AND ${isOurs}`);
}

export type KnownCircuit = Readonly<{
  service: string;
  isOpen: boolean;
  /** When it was last opened or closed. */
  since: string;
  isProbeDue: boolean;
}>;

export async function listCircuits(db: Queryable): Promise<readonly KnownCircuit[]> {
  return db.query<KnownCircuit>(sql`
    SELECT service, is_open AS "isOpen", extract(epoch FROM since)::text AS since,
           is_open AND probe_at <= clock_timestamp()
             AND (probe_until IS NULL OR probe_until <= clock_timestamp()) AS "isProbeDue"
    FROM saga.service_circuits ORDER BY service`);
}

/**
 * Makes one of the sagas that wait for the service its probe, and wakes it. `busy`: sagas wait, but all of them are
 * locked or leased.
 */
export async function wakeProbe(db: Database, service: string): Promise<'woken' | 'busy' | 'none'> {
  return db.transaction(async (tx) => {
    const rows = await tx.query(sql`
      WITH next AS MATERIALIZED (
        SELECT t.id FROM saga.saga_states t
        WHERE t.id IN (
          SELECT id FROM (
            SELECT id FROM saga.saga_states
            WHERE waiting_for = ${service} AND lease_owner IS NULL AND wake_at IS NOT NULL
            ORDER BY waiting_since, id LIMIT ${probesFrom}) AS oldest
          ORDER BY random() LIMIT 1)
        FOR UPDATE SKIP LOCKED
      ), woken AS (
        UPDATE saga.saga_states t SET wake_at = now() FROM next
        WHERE t.id = next.id AND t.waiting_for = ${service} AND t.lease_owner IS NULL AND t.wake_at IS NOT NULL
        RETURNING t.id
      )
      UPDATE saga.service_circuits c
      SET probe_saga = woken.id, probe_until = clock_timestamp() + ${milliseconds(claimWithinMs)}
      FROM woken WHERE c.service = ${service} AND c.is_open
      RETURNING 1`);
    if (rows.length > 0) {
      await notify(tx, sagaChannel);
      return 'woken';
    }
    const [waiting] = await tx.query(sql`
      SELECT 1 FROM saga.saga_states WHERE waiting_for = ${service} LIMIT 1`);
    return waiting === undefined ? 'none' : 'busy';
  });
}

/** Whether there is a circuit, or a saga that waits for a service: all that an idle server asks. */
export async function hasWork(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ found: boolean }>(sql`
    SELECT EXISTS (SELECT 1 FROM saga.service_circuits)
        OR EXISTS (SELECT 1 FROM saga.saga_states WHERE waiting_for IS NOT NULL) AS found`);
  return row?.found === true;
}

/** Wakes up to `limit` sagas that wait for a service whose circuit is closed; returns how many. */
export async function wakeWaiting(db: Database, limit: number): Promise<number> {
  return db.transaction(async (tx) => {
    const rows = await tx.query(sql`
      UPDATE saga.saga_states t SET wake_at = now(), waiting_for = NULL, waiting_since = NULL
      FROM (
        SELECT s.id FROM saga.saga_states s
        WHERE s.waiting_for IS NOT NULL AND s.lease_owner IS NULL AND s.wake_at IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM saga.service_circuits c WHERE c.service = s.waiting_for AND c.is_open)
        ORDER BY s.waiting_since, s.id LIMIT ${limit}
        FOR UPDATE SKIP LOCKED) AS back
      WHERE t.id = back.id
      RETURNING 1`);
    if (rows.length > 0) await notify(tx, sagaChannel);
    return rows.length;
  });
}

/** Sagas that need attention at a step of this service, by id. */
export async function stuckAt(
  db: Queryable,
  service: string,
  { after, limit }: Readonly<{ after: string | null; limit: number }>,
): Promise<readonly string[]> {
  const rows = await db.query<{ id: string }>(sql`
    SELECT t.id
    FROM saga.saga_states t JOIN saga.workflow_definitions d ON d.hash = t.definition_hash
    WHERE t.needs_attention AND t.id > COALESCE(${after}::uuid, '00000000-0000-0000-0000-000000000000')
      AND d.definition -> 'steps' -> t.stuck_step ->> 'service' = ${service}
    ORDER BY t.id LIMIT ${limit}`);
  return rows.map(({ id }) => id);
}

/** Deletes the row of a closed circuit once all stuck sagas were retried. */
export async function forgetCircuit(db: Queryable, service: string): Promise<void> {
  await db.query(sql`DELETE FROM saga.service_circuits WHERE service = ${service} AND NOT is_open`);
}
