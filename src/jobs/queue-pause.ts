import type { Queryable } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';

/**
 * A worker may start the jobs that it has claimed for this long after it saw that their queue is not paused. The pause
 * request waits that long before it answers; after that no worker starts a job of the queue, including a worker that
 * has lost its connection.
 */
export const startPermitMs = 1000;

/** With a margin for the time between a worker's look at its clock and the start of the handler. */
export const pauseTakesEffectMs = startPermitMs + 100;

/** Who paused a queue, when and why. All null if it was paused by hand in the database. */
export type Pause = Readonly<{ at: Date | null; by: string | null; reason: string | null }>;

export async function isPaused(db: Queryable, queue: string): Promise<boolean> {
  const rows = await db.query(sql`SELECT 1 FROM jobs.queues WHERE queue = ${queue} AND paused`);
  return rows.length > 0;
}
