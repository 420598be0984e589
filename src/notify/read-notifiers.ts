import type { Database } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';
import { destinationName, type Notifier } from './notifier.ts';

export type NotifierState = Readonly<{
  name: string;
  type: Notifier['type'];
  slices: readonly string[];
  /** When it was last told of anything; null if never, or long ago. */
  toldAt: Date | null;
  /** Events that wait for the end of a cool-down. */
  held: number;
  /** A notification was not delivered: nobody was told. */
  hasFailed: boolean;
}>;

export type NotifierStates = Readonly<{
  notifiers: readonly NotifierState[];
  /** When the oldest event was written that nobody has taken yet; null if there is none. */
  oldestEventAt: Date | null;
}>;

type GroupRow = Readonly<{ notifier: string; told_at: Date; held: bigint }>;

export async function readNotifiers(
  db: Database,
  notifiers: readonly Notifier[],
  destinationsWithDead: (db: Database, names: readonly string[]) => Promise<readonly string[]>,
): Promise<NotifierStates> {
  const names = notifiers.map(destinationName);
  const groups = await db.query<GroupRow>(sql`
    SELECT notifier, max(told_at) AS told_at, sum(held_count)::bigint AS held
    FROM platform.notify_groups WHERE notifier = ANY(${names}) GROUP BY notifier`);
  const [event] = await db.query<{ oldest: Date | null }>(sql`
    SELECT min(at) AS oldest FROM platform.notify_events`);
  const failed = new Set(await destinationsWithDead(db, names));
  return {
    notifiers: notifiers.map((notifier) => {
      const name = destinationName(notifier);
      const group = groups.find((row) => row.notifier === name);
      return {
        name: notifier.name,
        type: notifier.type,
        slices: notifier.slices,
        toldAt: group?.told_at ?? null,
        held: Number(group?.held ?? 0n),
        hasFailed: failed.has(name),
      };
    }),
    oldestEventAt: event?.oldest ?? null,
  };
}
