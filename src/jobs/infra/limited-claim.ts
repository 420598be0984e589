import { noteLimited } from '../../kernel/throttle.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Worker } from '../../platform/postgres/work.ts';
import { claimableNow, noteClaimed } from '../domain/queue-limits.ts';
import type { Claimed, ClaimOptions } from '../usecase/ports.ts';
import { claimJobs } from './claim-jobs.ts';
import { lockLimits, writeLimits } from './queue-limits-row.ts';

const nothing: Claimed = { jobs: [], last: null };

/**
 * Claims from a queue that is limited over all processes together: one claim at a time, under a lock on the queue's
 * row. What runs is counted in a statement after the one that waited for the lock, and so sees what the claim before
 * has committed; all that others can do meanwhile is end jobs.
 */
export async function claimLimited(db: Database, worker: Worker, options: ClaimOptions): Promise<Claimed> {
  const { queue, limit } = options;
  return db.transaction(async (tx) => {
    const reading = await lockLimits(tx, queue);
    // Without a row nothing bounds it any more.
    if (reading === null) return claimJobs({ ...worker, db: tx }, options);
    const { limits, nowMs } = reading;
    const running = limits.maxRunning === null ? 0 : await countRunning(tx, queue);
    const most = Math.min(limit, claimableNow(limits, running, nowMs));
    const claimed =
      most === 0 ? nothing : await claimJobs({ ...worker, db: tx }, { ...options, limit: most });
    const after = noteClaimed(limits, claimed.jobs.length, nowMs);
    if (after !== limits) await writeLimits(tx, queue, after);
    return claimed;
  });
}

async function countRunning(tx: Queryable, queue: string): Promise<number> {
  const [row] = await tx.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM jobs.job_queue WHERE queue = ${queue} AND status = 'running'`);
  return Number(row?.count ?? 0n);
}

/**
 * A target has said that it is busy: its queue goes at half of its rate, in every process. Whether that changes
 * anything. `measuredRate` is what was sent in the last second, over all processes.
 */
export async function slowQueue(db: Database, queue: string, measuredRate: number): Promise<boolean> {
  return db.transaction(async (tx) => {
    await tx.query(sql`INSERT INTO jobs.queues (queue) VALUES (${queue}) ON CONFLICT DO NOTHING`);
    const reading = await lockLimits(tx, queue);
    if (reading === null) throw new Error('a row that was just there is gone');
    const { limits, nowMs } = reading;
    const throttle = noteLimited(limits.throttle, { measuredRate }, nowMs);
    if (throttle === limits.throttle) return false;
    await writeLimits(tx, queue, { ...limits, throttle });
    return true;
  });
}
