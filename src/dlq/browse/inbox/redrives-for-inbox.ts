import type { NameFilter } from '../../../kernel/access/scope.ts';
import type { InboxGroup } from '../../../kernel/inbox/inbox-group.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { areNamed } from '../../../platform/postgres/is-named.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import type { InboxPart } from '../../../platform/work/inbox-part.ts';
import { dateOrNull, epochMs } from '../../instant.ts';

/** Redrives that have stopped by themselves: because messages came back, or their target was away. */
export const redrivesForInbox: InboxPart = {
  slice: 'dlq',
  kinds: { redrive: { permission: 'dlq:redrives:view', dimension: 'topics' } },
  async read(db, asked) {
    const names = asked.get('redrive');
    const groups = names === undefined ? [] : await listStopped(db, names);
    return { groups: groups.slice(0, maxRedrives), isPartial: groups.length > maxRedrives };
  },
};

const maxRedrives = 500;
const countedBack = 10_000;
const shownReason = 400;

type Stopped = Readonly<{
  id: string;
  reason: string | null;
  topics: readonly string[] | null;
  came_back: number;
  at: number;
}>;

async function listStopped(db: Queryable, names: NameFilter): Promise<readonly InboxGroup[]> {
  const rows = await db.query<Stopped>(sql`
    SELECT r.id, left(r.state_reason, ${shownReason}) AS reason, r.topics, back.count AS came_back,
           ${epochMs(sql`COALESCE(r.paused_at, r.watch_until, r.started_at, r.created_at)`)} AS at
    FROM (
      SELECT * FROM dlq.redrives t
      WHERE t.state = 'stopped' AND ${areNamed(sql`t.topics`, names)}
      ORDER BY t.created_at, t.id LIMIT ${maxRedrives + 1}
    ) AS r
    CROSS JOIN LATERAL (
      SELECT count(*)::int AS count FROM (
        SELECT 1 FROM dlq.redrive_items i
        WHERE i.redrive_id = r.id AND i.came_back_at IS NOT NULL LIMIT ${countedBack}
      ) AS counted
    ) AS back`);
  return rows.map(({ id, reason, topics, came_back: cameBack, at }) => ({
    kind: 'redrive',
    slice: 'dlq',
    key: [id],
    title: `redrive stopped: ${reason ?? 'no reason noted'}`,
    place: { redrive: id, ...(topics?.[0] === undefined ? {} : { topic: topics[0] }) },
    names: topics === null || topics.length === 0 ? {} : { topics },
    count: Math.max(1, cameBack),
    oldestAt: dateOrNull(at),
    newestAt: dateOrNull(at),
    firstAt: null,
    arrivals: null,
    danger: null,
    verb: { action: 'review', permission: 'dlq:redrives:start' },
    link: `/dlq/redrives/${id}`,
    samples: [],
  }));
}
