import type { NameFilter } from '../../kernel/access/scope.ts';
import { listLink } from '../../kernel/inbox/console-link.ts';
import type { InboxGroup } from '../../kernel/inbox/inbox-group.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isNamed } from '../../platform/postgres/is-named.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { groupForInbox, samplesOf, type GroupedItems } from '../../platform/work/group-for-inbox.ts';
import type { InboxPart } from '../../platform/work/inbox-part.ts';

/** Dead letters that nobody has decided about, and queues whose push target is down. */
export const jobsForInbox: InboxPart = {
  slice: 'jobs',
  kinds: {
    jobs: { permission: 'jobs:jobs:view', dimension: 'queues' },
    circuit: { permission: 'jobs:queues:view', dimension: 'queues' },
  },
  async read(db, asked) {
    const [names, ofCircuits] = [asked.get('jobs'), asked.get('circuit')];
    const groups = names === undefined ? [] : await groupForInbox(db, deadJobs(names), jobLimit * 10);
    const circuits = ofCircuits === undefined ? [] : await listOpenCircuits(db, ofCircuits);
    return {
      groups: [...groups.map(presentGroup), ...circuits],
      isPartial: groups.some(({ isPartial }) => isPartial),
    };
  },
};

const queueLimit = 1000;
/** Of one queue; of all together, ten times as many. */
const jobLimit = 3000;
/** By so much of an error causes without a fingerprint are told apart. */
const causeLength = 200;
const shownError = 500;

/** The newest of each queue. */
function deadJobs(names: NameFilter): Sql {
  const isUndecided = sql`j.status = 'dead_letter' AND j.resolution IS NULL`;
  return sql`
    WITH RECURSIVE found AS (
      (SELECT j.queue::text AS queue FROM jobs.job_queue j WHERE ${isUndecided} ORDER BY j.queue LIMIT 1)
      UNION ALL
      SELECT (SELECT j.queue::text FROM jobs.job_queue j
              WHERE ${isUndecided} AND j.queue > found.queue ORDER BY j.queue LIMIT 1)
      FROM found WHERE found.queue IS NOT NULL
    ), named AS MATERIALIZED (
      SELECT queue FROM (SELECT queue FROM found LIMIT ${queueLimit}) AS first
      WHERE queue IS NOT NULL AND ${isNamed(sql`queue`, names)}
    )
    SELECT 'jobs' AS kind, named.queue AS name,
           COALESCE(o.fingerprint, left(o.error, ${causeLength}), '') AS cause, o.id, o.error AS title, o.at,
           false AS is_dangerous
    FROM named
    CROSS JOIN LATERAL (
      SELECT j.job_id::text AS id, j.fingerprint, left(j.error_message, ${shownError}) AS error,
             COALESCE(j.completed_at, j.created_at) AS at
      FROM jobs.job_queue j
      WHERE j.queue = named.queue AND ${isUndecided}
      ORDER BY j.job_id DESC LIMIT ${jobLimit}
    ) AS o
    LIMIT ${jobLimit * 10}`;
}

function presentGroup(group: GroupedItems): InboxGroup {
  const { name: queue, cause, title, count, oldestAt, newestAt, arrivals, trend } = group;
  const fingerprint = /^v\d+:/.test(cause) ? { fingerprint: cause } : {};
  const terms = { status: 'dead_letter', resolution: 'unresolved', queue, ...fingerprint };
  return {
    kind: 'jobs',
    slice: 'jobs',
    key: [queue, cause],
    title: title === '' ? 'dead without an error' : title,
    place: { queue, ...fingerprint },
    names: { queues: [queue] },
    count,
    oldestAt,
    newestAt,
    firstAt: null,
    arrivals,
    danger: null,
    verb: { action: 'requeue', permission: 'jobs:jobs:requeue' },
    link: listLink('/jobs/list', terms),
    ...(trend === undefined ? {} : { trend }),
    samples: samplesOf(group, (id) => `/jobs/list/${id}`),
  };
}

async function listOpenCircuits(db: Queryable, names: NameFilter): Promise<readonly InboxGroup[]> {
  const rows = await db.query<Readonly<{ name: string; since: number; reason: string | null }>>(sql`
    SELECT q.queue AS name, (q.circuit ->> 'opened_at_ms')::float8 AS since,
           left(q.circuit ->> 'reason', ${shownError}) AS reason
    FROM jobs.queues q
    WHERE jsonb_typeof(q.circuit -> 'opened_at_ms') = 'number' AND ${isNamed(sql`q.queue`, names)}
    ORDER BY q.queue LIMIT ${queueLimit}`);
  return rows.map(({ name, since, reason }) => ({
    kind: 'circuit',
    slice: 'jobs',
    key: ['queue', name],
    title: `circuit of the target of ${name} is open: ${reason ?? ''}`,
    place: { queue: name },
    names: { queues: [name] },
    count: 1,
    oldestAt: new Date(since),
    newestAt: new Date(since),
    firstAt: null,
    arrivals: null,
    danger: null,
    verb: { action: 'check_target', permission: 'jobs:queues:view' },
    link: '/jobs/queues',
    samples: [],
  }));
}
