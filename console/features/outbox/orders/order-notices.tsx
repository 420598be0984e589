import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Glyph } from '../../../components/status/glyph.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { OrderDetails } from '../../../lib/server-shapes.ts';
import type { StatusRole } from '../../../lib/status/status-roles.ts';
import { useDestination } from '../use-destinations.ts';
import { orderLink } from './order-facts.tsx';
import { isInDoubt } from './order-words.ts';
import styles from './orders.module.css';
import { ordersTexts } from './texts/orders-texts.ts';
import { useBehindText } from './use-behind-text.ts';

/** What has to be known before anything is done: in doubt, blocking, blocked, its destination is away. */
export function OrderNotices({ order }: Readonly<{ order: OrderDetails }>) {
  const t = useText(ordersTexts);
  const destination = useDestination(order.destination);
  const isWaiting = order.status === 'queued' || order.status === 'failed';
  return (
    <>
      {isInDoubt(order) ? <InDoubt order={order} asksStatus={destination?.asks_status ?? null} /> : null}
      {order.needs_attention && !isInDoubt(order) ? (
        <Notice meaning="attention" title={t.deadTitle}>
          {t.deadText}
        </Notice>
      ) : null}
      {order.needs_attention ? <Behind order={order} /> : null}
      {isWaiting && order.lane?.blocked_by_id != null ? (
        <Notice meaning="queued" title={t.blockedTitle}>
          {t.blockedText} {orderLink(order.lane.blocked_by_id)}
        </Notice>
      ) : null}
      {isWaiting && destination?.circuit?.state === 'open' ? (
        <Notice meaning="retry" title={t.openCircuit(order.destination)}>
          <Link to="/outbox/destinations" search={{ name: order.destination }}>
            {t.toDestination}
          </Link>
        </Notice>
      ) : null}
    </>
  );
}

function InDoubt({ order, asksStatus }: Readonly<{ order: OrderDetails; asksStatus: boolean | null }>) {
  const t = useText(ordersTexts);
  const { destination, needs_attention: isDead } = order;
  return (
    <Notice meaning="doubt" title={t.doubtTitle}>
      {isDead ? (
        <>
          {t.doubtText}{' '}
          {asksStatus === null ? null : asksStatus ? t.doubtAsked(destination) : t.doubtNotAsked(destination)}
        </>
      ) : (
        t.doubtWaits
      )}
    </Notice>
  );
}

function Behind({ order }: Readonly<{ order: OrderDetails }>) {
  const t = useText(ordersTexts);
  const behind = useBehindText(order.lane);
  if (order.lane === null || order.lane.behind === 0) return null;
  return (
    <Notice meaning="attention" title={order.lane.behind === 1 ? t.blocksOneTitle : t.blocksTitle(behind)}>
      {t.blocksText(order.ordering_key ?? '')}
    </Notice>
  );
}

function Notice(props: Readonly<{ meaning: StatusRole; title: string; children: ReactNode }>) {
  const { meaning, title, children } = props;
  return (
    <section className={styles['notice']} data-role={meaning} aria-label={title}>
      <Glyph role={meaning} />
      <div>
        <strong>{title}</strong>
        <p>{children}</p>
      </div>
    </section>
  );
}
