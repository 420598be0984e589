import type { Database } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/postgres/wake.ts';
import type { Pause, QueueStore } from '../usecase/reading-ports.ts';
import { jobsChannel } from './jobs-channel.ts';

export function createPostgresQueueStore(db: Database): QueueStore {
  return {
    pause: (queue, by, reason) =>
      db.transaction(async (tx) => {
        await tx.query(sql`
          INSERT INTO jobs.queues AS q (queue, paused, paused_at, paused_by, paused_reason)
          VALUES (${queue}, true, clock_timestamp(), ${by}, ${reason})
          ON CONFLICT (queue) DO UPDATE SET
            paused = true, paused_at = EXCLUDED.paused_at, paused_by = EXCLUDED.paused_by,
            paused_reason = EXCLUDED.paused_reason, updated_at = EXCLUDED.updated_at
          WHERE NOT q.paused`);
        // The statement before has locked the row, whether it changed it or not.
        const [pause] = await tx.query<Pause>(sql`
          SELECT paused_at AS at, paused_by AS by, paused_reason AS reason FROM jobs.queues WHERE queue = ${queue}`);
        if (pause === undefined) throw new Error(`the row of queue ${queue} is gone`);
        return pause;
      }),

    resume: (queue) =>
      db.transaction(async (tx) => {
        const resumed = await tx.query(sql`
          UPDATE jobs.queues
          SET paused = false, paused_at = NULL, paused_by = NULL, paused_reason = NULL,
              updated_at = clock_timestamp()
          WHERE queue = ${queue} AND paused
          RETURNING queue`);
        if (resumed.length > 0) await notify(tx, jobsChannel(queue));
        return resumed.length > 0;
      }),
  };
}
