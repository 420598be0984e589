import type { Masks } from '../../../../kernel/protect/protection.ts';
import type { Queryable } from '../../../../platform/postgres/database.ts';
import { sql } from '../../../../platform/postgres/sql.ts';
import { timestamp, type Json } from '../../../present.ts';
import { presentProgress } from '../present-redrive.ts';
import { getRedrive, readProgress } from '../read-redrives.ts';

/** A redrive that runs, or has just ended, as the console shows it on every page. */
export type WatchedRedrive = Readonly<{ topics: readonly string[]; view: Json }>;

const maxWatched = 20;
/** So that all who watch see how it ended. */
const shownAfterEndSeconds = 60;

/** Oldest first. */
export async function watchRedrives(db: Queryable, masks: Masks): Promise<readonly WatchedRedrive[]> {
  const rows = await db.query<{ id: string }>(sql`
    (SELECT t.id, t.created_at FROM dlq.redrives t
     WHERE t.state IN ('planning', 'planned', 'running', 'paused', 'stopped')
        OR (t.state = 'cancelled' AND t.receipt IS NULL)
     ORDER BY t.created_at DESC, t.id DESC LIMIT ${maxWatched}::int)
    UNION
    (SELECT t.id, t.created_at FROM (
       SELECT * FROM dlq.redrives r ORDER BY r.created_at DESC, r.id DESC LIMIT ${maxWatched}::int
     ) AS t WHERE t.finished_at > clock_timestamp() - ${shownAfterEndSeconds} * interval '1 second')
    ORDER BY created_at LIMIT ${maxWatched}::int`);
  const watched: WatchedRedrive[] = [];
  for (const { id } of rows) {
    const redrive = await getRedrive(db, id);
    const { kind, reason, policy, createdAt, startedAt } = redrive;
    watched.push({
      topics: redrive.topics ?? [],
      view: {
        ...presentProgress(redrive, await readProgress(db, id), masks),
        kind,
        reason: masks.text(reason),
        policy,
        created_at: timestamp(createdAt),
        started_at: timestamp(startedAt),
      },
    });
  }
  return watched;
}
