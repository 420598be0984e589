import { setTimeout as wait } from 'node:timers/promises';
import { backoffMs } from '../../kernel/backoff.ts';
import { codeOf } from '../../kernel/errors.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { PostgresClient, PostgresPool } from '../postgres-pool.ts';
import { withClient, type Discard } from '../with-client.ts';
import type { Moment } from './decide-guarded-call.ts';

/** Returns columns as text, whatever type parsers the service has registered with pg. */
export type TextRow = Readonly<Record<string, string | null>>;
export type Ask = (statement: Sql) => Promise<readonly TextRow[]>;

export type GuardTransaction = Readonly<{
  ask: Ask;
  /** For the handler. */
  client: PostgresClient;
  moment(of: Instants): Promise<Moment>;
  /** Restores the service's lock timeout for the statements of the handler. */
  endWait(): Promise<void>;
}>;

type Instants = Readonly<{ deadline: Date; startedAt: Date; retentionMs: number }>;

/** How the transaction ends. `again`: a concurrent call interfered; start over. */
export type Ending<T> = Readonly<{ end: 'commit' | 'rollback'; value: T }> | Readonly<{ end: 'again' }>;

/** `busy`: another transaction has locked the row for too long. */
export type Ended<T> = Readonly<{ end: 'ended'; value: T }> | Readonly<{ end: 'busy' }>;

/** Attempts after deadlocks and serialization failures. */
const MAX_ROUNDS = 6;
const ROUND_BACKOFF = { initialMs: 10, maxMs: 200, jitter: 0.5 };

/** Serialization failure and deadlock: the call was rolled back and may be repeated. */
const conflicts: ReadonlySet<string> = new Set(['40001', '40P01']);
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Runs the work in a transaction of the service's database: READ COMMITTED, because a conflicting row must be visible
 * once it is committed; with synchronous commit, because the caller relies on the answer; and with an idle timeout,
 * because a process that lost its connection would lock the row for ever. The work starts with the statement that locks
 * the row.
 */
export async function inGuardTransaction<T>(
  pool: PostgresPool,
  work: (tx: GuardTransaction) => Promise<Ending<T>>,
): Promise<Ended<T>> {
  for (let round = 1; ; round += 1) {
    const ended = await withClient(
      () => pool.connect(),
      (client, discard) => runRound(client, discard, work),
    ).catch((error: unknown): 'conflict' => {
      if (round >= MAX_ROUNDS || !conflicts.has(codeOf(error) ?? '')) throw error;
      return 'conflict';
    });
    if (ended !== 'conflict' && ended.end !== 'again') return ended;
    if (round >= MAX_ROUNDS) return { end: 'busy' };
    await wait(backoffMs(ROUND_BACKOFF, round));
  }
}

async function runRound<T>(
  client: PostgresClient,
  discard: Discard,
  work: (tx: GuardTransaction) => Promise<Ending<T>>,
): Promise<Ended<T> | Readonly<{ end: 'again' }>> {
  const ask = askerOf(client);
  let isWaiting = true;
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
  try {
    const ownTimeout = await prepare(ask);
    const ending = await work({
      ask,
      client,
      moment: (of) => readMoment(ask, of),
      async endWait() {
        await ask(sql`SELECT set_config('lock_timeout', ${ownTimeout}, true)`);
        isWaiting = false;
      },
    });
    if (ending.end !== 'commit') {
      await client.query('ROLLBACK');
      return ending.end === 'again' ? ending : { end: 'ended', value: ending.value };
    }
    await commit(client);
    return { end: 'ended', value: ending.value };
  } catch (error) {
    await client.query('ROLLBACK').catch(discard);
    if (isWaiting && codeOf(error) === LOCK_NOT_AVAILABLE) return { end: 'busy' };
    throw error;
  }
}

/** Returns the session's own lock timeout. Touches no data. */
async function prepare(ask: Ask): Promise<string> {
  const [row] = await ask(sql`
    SELECT current_setting('lock_timeout') AS lock_timeout,
           CASE current_setting('synchronous_commit')
             WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END,
           CASE current_setting('idle_in_transaction_session_timeout')
             WHEN '0' THEN set_config('idle_in_transaction_session_timeout', '60s', true) END`);
  await ask(sql`SET LOCAL lock_timeout = '2s'`);
  return row?.['lock_timeout'] ?? '0';
}

/** A separate statement, because waiting for the row may have taken long. */
async function readMoment(ask: Ask, { deadline, startedAt, retentionMs }: Instants): Promise<Moment> {
  const [row] = await ask(sql`
    SELECT (clock_timestamp() > ${deadline.toISOString()}::timestamptz)::text AS is_late,
           (clock_timestamp() - ${retentionMs}::float8 * interval '1 millisecond'
              > ${startedAt.toISOString()}::timestamptz)::text AS is_forgotten`);
  return { isLate: row?.['is_late'] === 'true', isForgotten: row?.['is_forgotten'] === 'true' };
}

/** PostgreSQL reports no error for the COMMIT of a failed transaction. */
async function commit(client: PostgresClient): Promise<void> {
  const { command } = await client.query('COMMIT');
  if (command !== 'COMMIT') throw new Error('the transaction failed before its commit');
}

export function askerOf(client: PostgresClient): Ask {
  return async ({ text, values }) => {
    const { rows } = await client.query({
      text,
      values: [...values],
      types: { getTypeParser: () => asText },
    });
    return rows as readonly TextRow[];
  };
}

const asText = (text: string): string => text;
