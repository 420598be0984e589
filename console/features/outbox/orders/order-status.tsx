import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { roleOf } from '../../../lib/status/status-roles.ts';
import type { Order } from '../../../lib/server-shapes.ts';
import { isInDoubt } from './order-words.ts';
import styles from './orders.module.css';
import { ordersTexts } from './texts/orders-texts.ts';

/** The status with what qualifies it: how it was decided, in doubt, blocked. */
export function OrderStatus({ order, isFilled = false }: Readonly<{ order: Order; isFilled?: boolean }>) {
  const t = useText(ordersTexts);
  const { status, resolution, archived, held } = order;
  return (
    <span className={styles['status']}>
      {resolution === null ? (
        <StatusBadge status={archived ? 'archived' : status} isFilled={isFilled} />
      ) : (
        <StatusBadge status={status} detail={resolution} role={roleOf('cancelled')} isFilled={isFilled} />
      )}
      {isInDoubt(order) ? <StatusBadge status={t.inDoubt} role={roleOf('unknown')} /> : null}
      {held && resolution === null ? <StatusBadge status={t.blocked} role={roleOf('queued')} /> : null}
    </span>
  );
}
