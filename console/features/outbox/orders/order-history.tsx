import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import type { OrderDetails } from '../../../lib/server-shapes.ts';
import styles from './orders.module.css';
import { ordersTexts } from './texts/orders-texts.ts';

/** As many as the server returns at most. */
const auditLimit = 10_000;
/** A rate-limited order can collect a row per attempt for days. */
const shownEntries = 500;

/** Every transition, the newest first: who, why, and with which error. */
export function OrderHistory({ order }: Readonly<{ order: OrderDetails }>) {
  const t = useText(ordersTexts);
  const entries = order.audit.toReversed().slice(0, shownEntries);
  return (
    <section className={styles['panel']} aria-labelledby="history">
      <h2 id="history">{t.history}</h2>
      <div className={styles['scrolls']}>
        <table className={styles['facts']}>
          <thead>
            <tr>
              <th scope="col">{t.when}</th>
              <th scope="col">{t.change}</th>
              <th scope="col">{t.actor}</th>
              <th scope="col">{t.outsideId}</th>
              <th scope="col">{t.why}</th>
            </tr>
          </thead>
          <tbody>
            {entries.map((entry, i) => (
              <tr key={i}>
                <td>
                  <Time at={entry.at} />
                </td>
                <td>
                  {entry.status_from === null || entry.status_from === entry.status_to ? null : (
                    <>{entry.status_from} → </>
                  )}
                  <StatusBadge status={entry.status_to} />
                </td>
                <td>{entry.actor}</td>
                <td>
                  <code>
                    {entry.broker_order_id === null ? '–' : <MaskedText text={entry.broker_order_id} />}
                  </code>
                </td>
                <td>
                  <MaskedText
                    text={[entry.last_error, entry.reason].filter((part) => part !== null).join('; ') || '–'}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {order.audit.length > shownEntries || order.audit.length >= auditLimit ? (
        <p>{t.truncatedHistory}</p>
      ) : null}
    </section>
  );
}
