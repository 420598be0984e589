import type { NameFilter } from '../../kernel/access/scope.ts';
import { listLink } from '../../kernel/inbox/console-link.ts';
import type { InboxGroup } from '../../kernel/inbox/inbox-group.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isNamed } from '../../platform/postgres/is-named.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { groupForInbox, samplesOf, type GroupedItems } from '../../platform/work/group-for-inbox.ts';
import { nothing, type InboxPart } from '../../platform/work/inbox-part.ts';
import { errorCodeOf } from './order-filter.ts';

const byDestination = { permission: 'outbox:orders:view', dimension: 'destinations' } as const;

/** Dead orders that nobody has decided about, and destinations whose circuit is open. */
export const ordersForInbox: InboxPart = {
  slice: 'outbox',
  kinds: {
    orders: byDestination,
    in_doubt: byDestination,
    held_key: byDestination,
    circuit: { permission: 'outbox:destinations:view', dimension: 'destinations' },
  },
  async read(db, asked) {
    const [names, ofCircuits] = [asked.get('orders'), asked.get('circuit')];
    const orders = names === undefined ? nothing : await listDeadOrders(db, names);
    const circuits = ofCircuits === undefined ? [] : await listOpenCircuits(db, ofCircuits);
    return { groups: [...orders.groups, ...circuits], isPartial: orders.isPartial };
  },
};

const destinationLimit = 1000;
/** Of one destination; of all together, ten times as many. */
const orderLimit = 3000;
const shownError = 500;
const waitingLimit = 1000;

async function listDeadOrders(db: Queryable, names: NameFilter) {
  const groups = await groupForInbox(db, deadOrders(names), orderLimit * 10);
  const heads = groups.filter(({ kind }) => kind === 'held_key').map(({ cause }) => cause);
  const held = await readHeads(db, heads);
  return {
    groups: groups.map((group) => presentGroup(group, held.get(group.cause))),
    isPartial: groups.some(({ isPartial }) => isPartial),
  };
}

/**
 * Dead orders without a resolution, the newest of each destination. One that others of its ordering key wait for is a
 * group of its own, because a decision about it decides about them.
 */
function deadOrders(names: NameFilter): Sql {
  const isUndecided = sql`status = 'dead' AND resolution IS NULL`;
  return sql`
    WITH RECURSIVE found AS (
      (SELECT o.destination FROM outbox.outbox_orders o WHERE ${isUndecided} ORDER BY o.destination LIMIT 1)
      UNION ALL
      SELECT (SELECT o.destination FROM outbox.outbox_orders o
              WHERE ${isUndecided} AND o.destination > found.destination ORDER BY o.destination LIMIT 1)
      FROM found WHERE found.destination IS NOT NULL
    ), named AS MATERIALIZED (
      SELECT destination FROM (SELECT destination FROM found LIMIT ${destinationLimit}) AS first
      WHERE destination IS NOT NULL AND ${isNamed(sql`destination`, names)}
    )
    SELECT CASE WHEN o.is_waited_for THEN 'held_key' WHEN o.in_doubt THEN 'in_doubt' ELSE 'orders' END AS kind,
           named.destination AS name,
           CASE WHEN o.is_waited_for THEN o.id::text ELSE COALESCE(o.fingerprint, o.code, '') END AS cause,
           o.id::text AS id, o.error AS title, o.updated_at AS at, o.in_doubt AS is_dangerous
    FROM named
    CROSS JOIN LATERAL (
      SELECT t.id, t.fingerprint, ${errorCodeOf} AS code, left(t.last_error, ${shownError}) AS error, t.updated_at,
             t.in_doubt, t.ordering_key IS NOT NULL AND EXISTS (
               SELECT 1 FROM outbox.outbox_orders w
               WHERE w.destination = t.destination AND w.ordering_key = t.ordering_key
                 AND w.ordering_seq > t.ordering_seq AND w.status IN ('queued', 'failed')) AS is_waited_for
      FROM outbox.outbox_orders t
      WHERE t.destination = named.destination AND t.status = 'dead' AND t.resolution IS NULL
      ORDER BY t.id DESC LIMIT ${orderLimit}
    ) AS o
    LIMIT ${orderLimit * 10}`;
}

type Head = Readonly<{ id: string; orderingKey: string; waiting: number }>;

/** The keys of dead orders, and how many orders wait behind each. */
async function readHeads(db: Queryable, ids: readonly string[]): Promise<ReadonlyMap<string, Head>> {
  if (ids.length === 0) return new Map();
  const rows = await db.query<Head>(sql`
    SELECT t.id::text AS id, t.ordering_key AS "orderingKey", behind.waiting
    FROM outbox.outbox_orders t
    CROSS JOIN LATERAL (
      SELECT count(*)::int AS waiting FROM (
        SELECT 1 FROM outbox.outbox_orders w
        WHERE w.destination = t.destination AND w.ordering_key = t.ordering_key
          AND w.ordering_seq > t.ordering_seq AND w.status IN ('queued', 'failed') LIMIT ${waitingLimit}
      ) AS counted
    ) AS behind
    WHERE t.id = ANY(${ids}::bigint[]) AND t.ordering_key IS NOT NULL`);
  return new Map(rows.map((row) => [row.id, row]));
}

function presentGroup(group: GroupedItems, head: Head | undefined): InboxGroup {
  const { kind, name: destination, cause, title, isDangerous, oldestAt, newestAt, arrivals, trend } = group;
  const isFingerprint = /^v\d+:/.test(cause);
  const isUnknown = kind === 'in_doubt';
  return {
    kind,
    slice: 'outbox',
    key: [destination, cause],
    title,
    place: {
      destination,
      ...(isFingerprint ? { fingerprint: cause } : {}),
      ...(head === undefined ? {} : { ordering_key: head.orderingKey }),
    },
    names: { destinations: [destination] },
    count: head?.waiting ?? group.count,
    oldestAt,
    newestAt,
    firstAt: null,
    arrivals: kind === 'held_key' ? null : arrivals,
    danger: isDangerous ? 'effect_unknown' : null,
    verb: {
      action: isUnknown ? 'ask_status' : 'open',
      permission: kind === 'held_key' ? 'outbox:orders:skip' : 'outbox:orders:supersede',
    },
    link:
      kind === 'held_key'
        ? `/outbox/orders/${cause}`
        : listLink('/outbox/orders', {
            destination,
            ...(isFingerprint ? { fingerprint: cause } : {}),
            is: isUnknown ? 'in_doubt' : 'unresolved',
          }),
    ...(trend === undefined ? {} : { trend }),
    samples: samplesOf(group, (id) => `/outbox/orders/${id}`),
  };
}

/** Of destinations: nothing but probes is sent to them. */
async function listOpenCircuits(db: Queryable, names: NameFilter): Promise<readonly InboxGroup[]> {
  const rows = await db.query<Readonly<{ name: string; since: Date; reason: string }>>(sql`
    SELECT s.destination AS name, s.opened_at AS since, left(s.open_reason, ${shownError}) AS reason
    FROM outbox.destination_state s
    WHERE s.opened_at IS NOT NULL AND ${isNamed(sql`s.destination`, names)}
    ORDER BY s.opened_at, s.destination LIMIT ${destinationLimit}`);
  return rows.map(({ name, since, reason }) => ({
    kind: 'circuit',
    slice: 'outbox',
    key: ['destination', name],
    title: `circuit of ${name} is open: ${reason}`,
    place: { destination: name },
    names: { destinations: [name] },
    count: 1,
    oldestAt: since,
    newestAt: since,
    firstAt: null,
    arrivals: null,
    danger: null,
    verb: { action: 'check_target', permission: 'outbox:destinations:view' },
    link: '/outbox/destinations',
    samples: [],
  }));
}
