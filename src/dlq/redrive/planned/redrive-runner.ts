import { sleep } from '../../../kernel/clock.ts';
import type { Service } from '../../../kernel/service.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { workLeased } from '../../../platform/work/leased-work.ts';
import type { Rights } from '../../../kernel/access/rights.ts';
import { claim, hasRow, leaseIsOver } from '../../../platform/work/work.ts';
import { endCancelled, pauseRedrive } from './end-redrive.ts';
import { failPlan, planRedrive, type PlanDeps } from './plan-redrive.ts';
import { runDecision, type DecisionDeps } from './run-decision.ts';
import { findLostRight, scopesOfPlanner } from './access/redrive-rights.ts';
import { redrives, redrivesChannel, type LeasedRedrive } from './redrives-table.ts';
import { runRedrive, type RunDeps } from './run-redrive.ts';

export type RunnerDeps = PlanDeps &
  RunDeps &
  Omit<DecisionDeps, 'clock'> &
  Readonly<{
    db: Database;
    rights: Pick<Rights, 'principalOf'>;
    /** Resolves on a notification, or after the time. */
    wait: (channel: string, ms: number, signal: AbortSignal) => Promise<unknown>;
    onError: (error: unknown) => void;
  }>;

/** How many redrives a process plans or runs at a time. */
const maxRunning = 4;
/** In case a notification was lost, and to take over after a lost process. */
const pollMs = 5000;
/** Before another try at a redrive that failed on an error of its own. */
const errorRestMs = 1000;

/** Has work for a process: to plan, to run, or to end what a cancel has left. */
const hasWork = sql`(t.state IN ('planning', 'running') OR (t.state = 'cancelled' AND t.receipt IS NULL)) AND ${leaseIsOver}`;

/**
 * Plans and runs redrives. Each is worked on by the process that holds its lease; when that process is lost, another
 * one continues. Redrives run side by side.
 */
export function createRedriveRunner(deps: RunnerDeps): Service {
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  let looping = Promise.resolve();

  const start = (redrive: LeasedRedrive): void => {
    const row = {
      table: redrives,
      key: redrive.id,
      lease: redrive.lease,
      leaseMs: deps.leaseMs,
      onError: deps.onError,
    };
    const work = workLeased(deps.worker, row, stopping.signal, (leased) => workOn(deps, redrive, leased))
      .catch(async (error: unknown) => {
        deps.onError(error);
        await sleep(errorRestMs, stopping.signal);
      })
      .finally(() => running.delete(work));
    running.add(work);
  };

  const round = async (): Promise<boolean> => {
    if (running.size >= maxRunning || !(await hasRow(deps.db, redrives, hasWork))) return false;
    const redrive = await take(deps);
    if (redrive !== null) start(redrive);
    return redrive !== null;
  };

  const loop = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const hasStarted = await round().catch((error: unknown) => {
        deps.onError(error);
        return false;
      });
      deps.worker.watch?.beat('dlq', 'redrives');
      if (hasStarted) continue;
      // The end of a redrive makes room, or leaves something to end.
      await Promise.race([deps.wait(redrivesChannel, pollMs, stopping.signal), ...running]);
    }
  };

  return {
    name: 'dlq redrives',
    async start() {
      looping = loop();
    },
    async stop() {
      stopping.abort();
      await looping;
      await Promise.all(running);
    },
  };
}

async function workOn(deps: RunnerDeps, redrive: LeasedRedrive, leased: AbortSignal): Promise<void> {
  if (redrive.state === 'planning') return plan(deps, redrive, leased);
  if (redrive.state !== 'running') return endCancelled(deps.db, redrive, leased);
  const { kind } = redrive;
  return whileAllowed(deps, redrive, () =>
    kind === 'retry'
      ? runRedrive(deps, redrive, leased)
      : runDecision({ ...deps, clock: deps.worker.clock }, { ...redrive, kind }, leased),
  );
}

async function plan(deps: RunnerDeps, redrive: LeasedRedrive, leased: AbortSignal): Promise<void> {
  const scopes = await scopesOfPlanner(deps.rights, redrive);
  if (typeof scopes === 'string') return failPlan(deps.db, redrive, scopes);
  return planRedrive(deps, { ...redrive, scopes }, leased);
}

/** How long a redrive continues after a right was lost, besides what is in flight. */
const rightsEveryMs = 1000;

/** Pauses the redrive when the principal that started it loses the right to it; `run` ends then, as after any pause. */
async function whileAllowed(
  { db, rights, onError }: RunnerDeps,
  redrive: LeasedRedrive,
  run: () => Promise<void>,
): Promise<void> {
  const check = async (): Promise<boolean> => {
    const lost = await findLostRight(rights, redrive);
    if (lost !== null) await pauseRedrive(db, redrive, lost);
    return lost === null;
  };
  if (!(await check())) return;
  const ended = new AbortController();
  const watching = (async () => {
    for (let isAllowed = true; isAllowed && !ended.signal.aborted;) {
      await sleep(rightsEveryMs, ended.signal);
      if (!ended.signal.aborted)
        isAllowed = await check().catch((error: unknown) => {
          onError(error);
          return true;
        });
    }
  })();
  try {
    await run();
  } finally {
    ended.abort();
    await watching;
  }
}

async function take({ worker, leaseMs }: RunnerDeps): Promise<LeasedRedrive | null> {
  const { lease, rows } = await claim<Omit<LeasedRedrive, 'lease'>>(worker, redrives, {
    where: hasWork,
    orderBy: sql`t.created_at, t.id`,
    limit: 1,
    leaseMs,
    set: sql`lease_lost = false`,
    returning: sql`t.id, t.kind, t.state, t.filter, t.options, t.actor, t.started_by AS "startedBy", t.topics, t.reason, t.planned_at IS NOT NULL AS "isPlanned"`,
  });
  const [row] = rows;
  return row === undefined ? null : { ...row, lease };
}
