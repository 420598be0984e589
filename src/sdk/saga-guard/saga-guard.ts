import { parseDuration } from '../../kernel/duration.ts';
import { messageOf } from '../../kernel/errors.ts';
import type { ClientOf, PostgresClient, PostgresPool } from '../postgres-pool.ts';
import { cleanUpGuard } from './clean-up.ts';
import { completeDeferredAction, guardDeferredAction, type CompletedAction } from './deferred-action.ts';
import type { SagaCall } from './guard-call.ts';
import { guardTable, sagaGuardMigration } from './guard-table.ts';
import { inGuardTransaction } from './guard-transaction.ts';
import { guardAction, type ActionHandler, type Guarded, type GuardDeps } from './guarded-action.ts';
import { guardUndo, type UndoHandler } from './guarded-undo.ts';
import { createLongRuns, guardLongAction, type LongAction } from './long-action.ts';
import { Sql, sql } from '../../platform/postgres/sql.ts';

export type SagaGuardOptions<Pool extends PostgresPool = PostgresPool> = Readonly<{
  /** For the database of the handlers: the guard's row and their effect are written in one transaction. */
  pool: Pool;
  /** The schema of the guard's table; `public` by default. */
  schema?: string;
  /** How long answers are kept; `400d` by default. Sagas that are older can no longer be undone here. */
  retention?: string;
  /** Gets what a handler threw; the call was rolled back and answered 500. By default it is written to standard error. */
  onError?: (error: unknown, call: SagaCall) => void;
}>;

/**
 * Makes the calls of sagas harmless, however often, late or out of order they arrive. `Client` is what the service's pool
 * connects to; handlers get it in the transaction of the guard.
 */
export type SagaGuard<Client = PostgresClient> = Readonly<{
  action<Body = unknown, Answer = unknown>(handler: ActionHandler<Body, Answer, Client>): Guarded;
  longAction<Body = unknown, Work = unknown, Answer = unknown>(
    action: LongAction<Body, Work, Answer, Client>,
  ): Guarded;
  /**
   * Begins in this transaction and is answered 202 until `complete` is called, in any process. `begin` may only record
   * the request (a job, a task): if the saga is undone before `complete`, the record stays and no undo handler is
   * called. `complete` then returns `undone`.
   */
  deferredAction<Body = unknown>(begin: ActionHandler<Body, unknown, Client>): Guarded;
  /**
   * Completes a deferred action with what the effect returns or refuses. `undone`: the saga was undone, and the effect
   * was not called. `unknown`: no such action was begun, or its row has expired.
   */
  complete(
    step: Readonly<{ sagaId: string; step: string }>,
    effect: (tx: Client) => unknown,
  ): Promise<CompletedAction>;
  undo<Body = unknown, Answer = unknown>(handler: UndoHandler<Body, Answer, Client>): Guarded;
  /** Creates the table if it is missing; with another pool if the service's own role may not create tables. */
  migrate(pool?: PostgresPool): Promise<void>;
  /** Deletes expired rows; call it once a day. Returns how many it deleted. */
  cleanUp(): Promise<number>;
  /** Aborts the long actions of this process and releases them. */
  stop(): Promise<void>;
}>;

type Effect = (tx: PostgresClient) => unknown;

const USUAL_RETENTION = '400d';
/** Advisory lock: processes that start at once create the table one after another. */
const MIGRATION_LOCK = 7_291_846_035_112n;

export function sagaGuard<Pool extends PostgresPool>(
  options: SagaGuardOptions<Pool>,
): SagaGuard<ClientOf<Pool>> {
  const { pool, schema = 'public', retention = USUAL_RETENTION } = options;
  const retentionMs = parseDuration(retention);
  if (retentionMs === undefined || retentionMs < 1)
    throw new TypeError(
      `sagaGuard: retention must be a duration such as ${USUAL_RETENTION}, not ${retention}`,
    );
  const deps: GuardDeps = {
    pool,
    table: guardTable(schema),
    retentionMs,
    onError: quietly(options.onError ?? writeError),
  };
  const runs = createLongRuns();
  return {
    action: (handler) => guardAction(deps, handler as ActionHandler),
    longAction: (action) => guardLongAction(deps, runs, action as LongAction),
    deferredAction: (begin) => guardDeferredAction(deps, begin as ActionHandler),
    complete: (step, effect) => completeDeferredAction(deps, step, effect as Effect),
    undo: (handler) => guardUndo(deps, handler as UndoHandler),
    migrate: (by = pool) => migrate(by, schema),
    cleanUp: () => cleanUpGuard(pool, deps.table, retentionMs),
    stop: () => runs.stop(),
  };
}

async function migrate(pool: PostgresPool, schema: string): Promise<void> {
  await inGuardTransaction<null>(pool, async ({ ask }) => {
    await ask(sql`SET LOCAL lock_timeout = 0`);
    await ask(sql`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
    // Checked first, because a service that may not create tables can use an existing one.
    const [found] = await ask(sql`SELECT to_regclass(${guardTable(schema).text})::text AS found`);
    if (found?.['found'] == null) await ask(new Sql([sagaGuardMigration(schema)], []));
    return { end: 'commit', value: null };
  });
}

/** An error in the reporter must not change the answer of the call. */
function quietly(report: GuardDeps['onError']): GuardDeps['onError'] {
  return (error, call) => {
    try {
      report(error, call);
    } catch (failure) {
      writeError(failure, call);
    }
  };
}

function writeError(error: unknown, { sagaId, step }: SagaCall): void {
  process.stderr.write(`redrive: step ${step} of saga ${sagaId} failed: ${messageOf(error)}\n`);
}
