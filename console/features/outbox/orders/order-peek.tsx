import { LinkButton } from '../../../components/button/link-button.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import { OrderAttempts } from './order-attempts.tsx';
import { OrderFacts } from './order-facts.tsx';
import { OrderNotices } from './order-notices.tsx';
import { OrderRequest } from './order-request.tsx';
import { OrderStatus } from './order-status.tsx';
import styles from './orders.module.css';
import { ordersTexts } from './texts/orders-texts.ts';
import { useOrder } from './use-order.ts';

/** The first screen of an order, beside its list. */
export function OrderPeek({ id }: Readonly<{ id: string }>) {
  const t = useText(ordersTexts);
  const { query, readAgain } = useOrder(id);
  return (
    <div className={styles['peek']}>
      <LoadedPanel
        loaded={loadedOf(query, () => null)}
        onRetry={() => void readAgain()}
        renderEmpty={() => null}
      >
        {({ order, requestText }) => (
          <>
            <div className={styles['peekHead']}>
              <OrderStatus order={order} isFilled />
              <LinkButton to={`/outbox/orders/${id}`}>{t.open}</LinkButton>
            </div>
            <OrderNotices order={order} />
            <OrderFacts order={order} />
            <OrderAttempts order={order} />
            <OrderRequest order={order} text={requestText} />
          </>
        )}
      </LoadedPanel>
    </div>
  );
}
