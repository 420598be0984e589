import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';

/** The labels are closed sets: there are at most 4 kinds, 3 states and 10 outcomes. */
export type RedriveItemCount = Readonly<{ kind: string; state: string; outcome: string; count: number }>;

/** The outcomes of the messages of redrives that were started and have not ended. */
export function countRedriveItems(db: Queryable): Promise<readonly RedriveItemCount[]> {
  return db.query<RedriveItemCount>(sql`
    SELECT r.kind, r.state,
           COALESCE(i.outcome, CASE WHEN i.claim_epoch IS NULL THEN 'waiting' ELSE 'in_flight' END) AS outcome,
           count(*)::float8 AS count
    FROM dlq.redrives r JOIN dlq.redrive_items i ON i.redrive_id = r.id
    WHERE r.state IN ('running', 'paused', 'stopped')
    GROUP BY 1, 2, 3`);
}
