import { useMemo } from 'react';
import { kitTexts } from '../../../components/kit-texts/kit-texts.ts';
import { PayloadViews } from '../../../components/payload/payload-views.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { OrderDetails } from '../../../lib/server-shapes.ts';
import styles from './orders.module.css';
import { ordersTexts } from './texts/orders-texts.ts';

const shownBytes = 262_144;

/** The request as it is stored and sent. */
export function OrderRequest({ order, text }: Readonly<{ order: OrderDetails; text: string | null }>) {
  const t = useText(ordersTexts);
  const kit = useText(kitTexts);
  const bytes = useMemo(() => new TextEncoder().encode(text ?? ''), [text]);
  return (
    <section className={styles['panel']} aria-labelledby="request">
      <h2 id="request">{t.request}</h2>
      {order.request_omitted === true || text === null ? (
        <p>{t.requestOmitted}</p>
      ) : (
        <PayloadViews isFindable value={{ bytes: bytes.subarray(0, shownBytes), size: bytes.length }} />
      )}
      <p className={styles['hint']}>
        {t.digest} <code>{order.request_digest ?? kit.noValue}</code>
      </p>
    </section>
  );
}
