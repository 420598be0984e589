import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Definitions } from '../../../components/definitions/definitions.tsx';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { printFilter } from '../../../lib/filter/filter.ts';
import { formatCount } from '../../../lib/sizes.ts';
import type { OrderDetails } from '../../../lib/server-shapes.ts';
import { useDestination } from '../use-destinations.ts';
import { useBehindText } from './use-behind-text.ts';
import { ordersTexts } from './texts/orders-texts.ts';

/** Where it goes, under which keys, and what it has to do with other orders. */
export function OrderFacts({ order }: Readonly<{ order: OrderDetails }>) {
  const t = useText(ordersTexts);
  const max = useDestination(order.destination)?.retry_max ?? null;
  const { retry_count: used, fingerprint } = order;
  return (
    <Definitions
      items={[
        {
          term: t.destination,
          value: (
            <Link to="/outbox/destinations" search={{ name: order.destination }}>
              {order.destination}
            </Link>
          ),
        },
        { term: t.key, value: code(order.idempotency_key) },
        { term: t.orderingKey, value: filterLink('lane', order.ordering_key, order.ordering_key) },
        { term: t.lane, value: order.lane === null ? null : <LanePlace lane={order.lane} /> },
        { term: t.retries, value: max === null ? formatCount(used) : t.retriesOf(used, max) },
        { term: t.next, value: time(order.next_attempt_at) },
        { term: t.age, value: time(order.created_at) },
        { term: t.firstSent, value: time(order.first_sent_at) },
        { term: t.updated, value: time(order.updated_at) },
        { term: t.resolution, value: order.resolution },
        { term: t.supersedes, value: orderLink(order.supersedes_id) },
        { term: t.supersededBy, value: orderLink(order.superseded_by_id) },
        { term: t.traceId, value: code(order.trace_id) },
        { term: t.error, value: filterLink('fingerprint', fingerprint, t.sameError) },
      ]}
    />
  );
}

function LanePlace({ lane }: Readonly<{ lane: NonNullable<OrderDetails['lane']> }>) {
  const t = useText(ordersTexts);
  const behind = useBehindText(lane);
  return (
    <>
      {lane.blocked_by_id === null ? null : (
        <>
          {t.waitsFor} {orderLink(lane.blocked_by_id)}
          {' · '}
        </>
      )}
      {t.behind(behind)}
    </>
  );
}

function time(at: string | null): ReactNode {
  return at === null ? null : <Time at={at} />;
}

function code(text: string | null): ReactNode {
  if (text === null) return null;
  return (
    <code>
      <MaskedText text={text} />
    </code>
  );
}

export function orderLink(id: number | null): ReactNode {
  if (id === null) return null;
  return (
    <Link to="/outbox/orders/$id" params={{ id: String(id) }}>
      {id}
    </Link>
  );
}

/** To the orders with the same value. */
function filterLink(qualifier: string, value: string | null, text: string | null): ReactNode {
  if (value === null) return null;
  return (
    <Link to="/outbox/orders" search={{ q: printFilter([{ qualifier, value, isExcluded: false }]) }}>
      <MaskedText text={text ?? value} />
    </Link>
  );
}
