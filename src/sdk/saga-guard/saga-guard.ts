import type { ClientBase, Pool } from 'pg';
import { parseDuration } from '../../kernel/duration.ts';
import { messageOf } from '../../kernel/errors.ts';
import { cleanUpGuard } from './clean-up.ts';
import { completeDeferredAction, guardDeferredAction, type CompletedAction } from './deferred-action.ts';
import type { SagaCall } from './guard-call.ts';
import { guardTable, sagaGuardMigration } from './guard-table.ts';
import { inGuardTransaction } from './guard-transaction.ts';
import { guardAction, type ActionHandler, type Guarded, type GuardDeps } from './guarded-action.ts';
import { guardUndo, type UndoHandler } from './guarded-undo.ts';
import { createLongRuns, guardLongAction, type LongAction } from './long-action.ts';
import { Sql, sql } from '../../platform/postgres/sql.ts';

export type SagaGuardOptions = Readonly<{
  /** Of the database in which the handlers work: the guard's row and their effect are one transaction. */
  pool: Pool;
  /** Where the guard's table is; `public` by default. */
  schema?: string;
  /** How long it is known what was done, such as `400d`, the default. An older saga can no longer be undone here. */
  retention?: string;
  /** What a handler threw; the call was rolled back and answered 500. Written to standard error by default. */
  onError?: (error: unknown, call: SagaCall) => void;
}>;

/** Makes the calls of sagas harmless, however often, late or out of order they arrive. */
export type SagaGuard = Readonly<{
  action<Body = unknown, Answer = unknown>(handler: ActionHandler<Body, Answer>): Guarded;
  longAction<Body = unknown, Work = unknown, Answer = unknown>(
    action: LongAction<Body, Work, Answer>,
  ): Guarded;
  /**
   * Begins in this transaction and is answered 202 until `complete` ends it, in whatever process. `begin` may note
   * what was asked for (a job, a task), and nothing that counts: if the saga is undone before `complete`, that note
   * stays and no undo handler is called. Whoever acts on it learns from `complete` that it is void.
   */
  deferredAction<Body = unknown>(begin: ActionHandler<Body>): Guarded;
  /**
   * Ends a deferred action: what the effect returns is the action's answer, and a refusal refuses it. `undone`: the
   * saga no longer wants it, and the effect was not called; `unknown`: no such action was begun, or it is forgotten.
   */
  complete(
    step: Readonly<{ sagaId: string; step: string }>,
    effect: (tx: ClientBase) => unknown,
  ): Promise<CompletedAction>;
  undo<Body = unknown, Answer = unknown>(handler: UndoHandler<Body, Answer>): Guarded;
  /** Creates the table where it is missing; with a pool of another role, if the service's own may not. */
  migrate(pool?: Pool): Promise<void>;
  /** Deletes what nobody will ask for any more; call it once a day. Answers how many rows went. */
  cleanUp(): Promise<number>;
  /** Breaks off the long actions of this process and gives them back. */
  stop(): Promise<void>;
}>;

const USUAL_RETENTION = '400d';
/** Any number that others do not use: processes that start at once migrate one after another. */
const MIGRATION_LOCK = 7_291_846_035_112n;

export function sagaGuard(options: SagaGuardOptions): SagaGuard {
  const { pool, schema = 'public', retention = USUAL_RETENTION } = options;
  const retentionMs = parseDuration(retention);
  if (retentionMs === undefined || retentionMs < 1)
    throw new TypeError(`sagaGuard: retention is no duration such as ${USUAL_RETENTION}: ${retention}`);
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
    complete: (step, effect) => completeDeferredAction(deps, step, effect),
    undo: (handler) => guardUndo(deps, handler as UndoHandler),
    migrate: (by = pool) => migrate(by, schema),
    cleanUp: () => cleanUpGuard(pool, deps.table, retentionMs),
    stop: () => runs.stop(),
  };
}

async function migrate(pool: Pool, schema: string): Promise<void> {
  await inGuardTransaction<null>(pool, async ({ ask }) => {
    await ask(sql`SET LOCAL lock_timeout = 0`);
    await ask(sql`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
    // Asked first: a service that may not create tables need not, once there is one.
    const [found] = await ask(sql`SELECT to_regclass(${guardTable(schema).text})::text AS found`);
    if (found?.['found'] == null) await ask(new Sql([sagaGuardMigration(schema)], []));
    return { end: 'commit', value: null };
  });
}

/** What reports a fault must not become one: the call has its answer all the same. */
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
