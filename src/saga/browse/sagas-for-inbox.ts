import type { NameFilter } from '../../kernel/access/scope.ts';
import { listLink } from '../../kernel/inbox/console-link.ts';
import type { InboxGroup } from '../../kernel/inbox/inbox-group.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isNamed } from '../../platform/postgres/is-named.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { groupForInbox, samplesOf, type GroupedItems } from '../../platform/work/group-for-inbox.ts';
import type { InboxPart } from '../../platform/work/inbox-part.ts';

/** Stuck sagas, and services whose circuit is open. */
export const sagasForInbox: InboxPart = {
  slice: 'saga',
  kinds: {
    sagas: { permission: 'saga:sagas:view', dimension: 'workflows' },
    circuit: { permission: 'saga:services:view', dimension: null },
  },
  async read(db, asked) {
    const names = asked.get('sagas');
    const groups = names === undefined ? [] : await groupForInbox(db, stuckSagas(names), sagaLimit);
    const circuits = asked.has('circuit') ? await listOpenCircuits(db) : [];
    return {
      groups: [...groups.map(presentGroup), ...circuits],
      isPartial: groups.some(({ isPartial }) => isPartial),
    };
  },
};

const sagaLimit = 10_000;
const shownReason = 500;
const serviceLimit = 1000;

/** The newest ones, by the step that they are stuck at. */
function stuckSagas(names: NameFilter): Sql {
  return sql`
    SELECT 'sagas' AS kind, s.name, COALESCE(d.definition -> 'steps' -> s.stuck_step ->> 'name', '') AS cause, s.id,
           concat_ws(': ', CASE WHEN s.stuck_op = 'COMPENSATE' THEN 'undo' END, s.reason) AS title, s.at,
           s.stuck_op IS NOT DISTINCT FROM 'COMPENSATE' AS is_dangerous
    FROM (
      SELECT t.id::text AS id, t.workflow_name::text AS name, t.definition_hash, t.stuck_step, t.stuck_op,
             left(t.stuck_reason, ${shownReason}) AS reason, t.updated_at AS at
      FROM saga.saga_states t
      WHERE t.needs_attention AND ${isNamed(sql`t.workflow_name`, names)}
      ORDER BY t.created_at DESC, t.id LIMIT ${sagaLimit}
    ) AS s
    LEFT JOIN saga.workflow_definitions d ON d.hash = s.definition_hash`;
}

function presentGroup(group: GroupedItems): InboxGroup {
  const { name: workflow, cause: step, title, count, oldestAt, newestAt, arrivals, trend } = group;
  const place = { workflow, ...(step === '' ? {} : { step }) };
  return {
    kind: 'sagas',
    slice: 'saga',
    key: [workflow, step],
    title: `${workflow}${step === '' ? '' : ` / ${step}`}: ${title}`,
    place,
    names: { workflows: [workflow] },
    count,
    oldestAt,
    newestAt,
    firstAt: null,
    arrivals,
    danger: group.isDangerous ? 'undo_stuck' : null,
    verb: { action: 'open', permission: 'saga:sagas:repair' },
    link: listLink('/sagas', { is: 'stuck', ...place }),
    ...(trend === undefined ? {} : { trend }),
    samples: samplesOf(group, (id) => `/sagas/${id}`),
  };
}

async function listOpenCircuits(db: Queryable): Promise<readonly InboxGroup[]> {
  const rows = await db.query<Readonly<{ service: string; since: Date; reason: string }>>(sql`
    SELECT c.service, c.since, left(c.reason, ${shownReason}) AS reason FROM saga.service_circuits c
    WHERE c.is_open ORDER BY c.since, c.service LIMIT ${serviceLimit}`);
  return rows.map(({ service, since, reason }) => ({
    kind: 'circuit',
    slice: 'saga',
    key: ['service', service],
    title: `circuit of ${service} is open: ${reason}`,
    place: { service },
    names: {},
    count: 1,
    oldestAt: since,
    newestAt: since,
    firstAt: null,
    arrivals: null,
    danger: null,
    verb: { action: 'check_target', permission: 'saga:services:view' },
    link: listLink('/sagas', { service }),
    samples: [],
  }));
}
