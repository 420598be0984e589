import type { Act } from '../../kernel/audit/act.ts';
import { AppError } from '../../kernel/errors.ts';
import { sleep } from '../../kernel/clock.ts';
import { nearest } from '../../kernel/nearest.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import { notify } from '../../platform/work/wake.ts';
import { jobsChannel } from '../channels.ts';
import { pauseTakesEffectMs, type Pause } from '../queue-pause.ts';

export type PauseDeps = KnownQueueDeps &
  Readonly<{
    db: Database;
    log: Pick<Logger, 'info'>;
  }>;

type PauseRequest = Readonly<{ queue: string; by: string; reason: string | null; act: Act }>;

/**
 * Returns when no worker starts a job of the queue any more, not even one that it has claimed ahead; running jobs
 * finish. If the queue is paused already, returns the existing pause. A queue that does not exist is paused only if
 * `isNew`: otherwise its name is probably misspelt.
 */
export async function pauseQueue(
  deps: PauseDeps,
  { isNew, ...request }: PauseRequest & Readonly<{ isNew: boolean }>,
): Promise<Pause> {
  if (!isNew) await requireKnownQueue(deps, request.queue);
  const pause = await writePause(deps.db, request);
  const { queue, by, reason } = request;
  deps.log.info({ queue, by, reason }, 'queue paused');
  await sleep(pauseTakesEffectMs);
  return pause;
}

function writePause(db: Database, { queue, by, reason, act }: PauseRequest): Promise<Pause> {
  return db.transaction(async (tx) => {
    const paused = await tx.query(sql`
      INSERT INTO jobs.queues AS q (queue, paused, paused_at, paused_by, paused_reason)
      VALUES (${queue}, true, clock_timestamp(), ${by}, ${reason})
      ON CONFLICT (queue) DO UPDATE SET
        paused = true, paused_at = EXCLUDED.paused_at, paused_by = EXCLUDED.paused_by,
        paused_reason = EXCLUDED.paused_reason, updated_at = EXCLUDED.updated_at
      WHERE NOT q.paused
      RETURNING q.queue`);
    if (paused.length > 0) await recordPause(tx, act, { queue, event: 'pause' });
    // The statement above has locked the row, whether it changed it or not.
    const [pause] = await tx.query<Pause>(sql`
      SELECT paused_at AS at, paused_by AS by, paused_reason AS reason FROM jobs.queues WHERE queue = ${queue}`);
    if (pause === undefined) throw new Error(`queue ${queue} has no row`);
    return pause;
  });
}

/** Wakes the queue's workers. A queue that is not paused stays as it is. */
export async function resumeQueue(deps: PauseDeps, request: PauseRequest): Promise<void> {
  const { queue, by, reason, act } = request;
  await requireKnownQueue(deps, queue);
  const wasPaused = await deps.db.transaction(async (tx) => {
    const resumed = await tx.query(sql`
      UPDATE jobs.queues
      SET paused = false, paused_at = NULL, paused_by = NULL, paused_reason = NULL, updated_at = clock_timestamp()
      WHERE queue = ${queue} AND paused
      RETURNING queue`);
    if (resumed.length === 0) return false;
    await recordPause(tx, act, { queue, event: 'resume' });
    await notify(tx, jobsChannel(queue));
    return true;
  });
  if (wasPaused) deps.log.info({ queue, by, reason }, 'queue resumed');
}

function recordPause(
  tx: Queryable,
  act: Act,
  { queue, event }: Readonly<{ queue: string; event: 'pause' | 'resume' }>,
): Promise<void> {
  return recordAct(tx, act, {
    resource: `jobs/queues/${queue}`,
    names: { queues: [queue] },
    detail: { event },
  });
}

export type KnownQueueDeps = Readonly<{
  db: Queryable;
  /** For suggestions. */
  queueNames: () => Promise<readonly string[]>;
}>;

export async function requireKnownQueue({ db, queueNames }: KnownQueueDeps, queue: string): Promise<void> {
  if (await isKnown(db, queue)) return;
  const similar = nearest(queue, await queueNames()).slice(0, 3);
  const hint = similar.length === 0 ? '' : `; did you mean ${similar.join(' or ')}?`;
  throw new AppError('SYS_JOBS_QUEUE_NOT_FOUND', 'not_found', `queue not found: ${queue}${hint}`);
}

/** No index has completed jobs by queue: only this many of the newest jobs are searched. */
const newestJobs = 10_000;

/** Configured, paused or throttled before, with jobs, or with a worker that waited for it in the last day. */
async function isKnown(db: Queryable, queue: string): Promise<boolean> {
  const [row] = await db.query<{ is_known: boolean }>(sql`
    SELECT EXISTS (SELECT 1 FROM jobs.queues WHERE queue = ${queue})
        OR EXISTS (SELECT 1 FROM jobs.job_queue WHERE queue = ${queue} AND status IN ('pending', 'failed'))
        OR EXISTS (SELECT 1 FROM jobs.job_queue WHERE queue = ${queue} AND status = 'running')
        OR EXISTS (SELECT 1 FROM jobs.job_queue WHERE queue = ${queue} AND status = 'dead_letter')
        OR EXISTS (
          SELECT 1 FROM platform.idle_workers
          WHERE channel = ${jobsChannel(queue)} AND idle_until > clock_timestamp() - interval '1 day')
        OR EXISTS (
          SELECT 1 FROM (SELECT queue FROM jobs.job_queue ORDER BY job_id DESC LIMIT ${newestJobs}) AS newest
          WHERE queue = ${queue}) AS is_known`);
  return row?.is_known === true;
}
