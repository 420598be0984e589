import { Definitions } from '../../../components/definitions/definitions.tsx';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import type { OrderDetails } from '../../../lib/server-shapes.ts';
import { usePreferences } from '../../../components/preferences/preferences.tsx';
import { formatDuration } from '../../../lib/times.ts';
import { answerOf } from './order-words.ts';
import styles from './orders.module.css';
import { ordersTexts } from './texts/orders-texts.ts';

export type Attempt = OrderDetails['attempts'][number];

/** Every send, the newest first, and what is kept of the last answer. */
export function OrderAttempts({ order }: Readonly<{ order: OrderDetails }>) {
  const t = useText(ordersTexts);
  return (
    <section className={styles['panel']} aria-labelledby="attempts">
      <h2 id="attempts">{t.attempts}</h2>
      <AttemptTable attempts={order.attempts} />
      <LastAnswer order={order} />
    </section>
  );
}

export function AttemptTable({ attempts }: Readonly<{ attempts: readonly Attempt[] }>) {
  const t = useText(ordersTexts);
  if (attempts.length === 0) return <p>{t.noAttempts}</p>;
  return (
    <div className={styles['scrolls']}>
      <table className={styles['facts']}>
        <thead>
          <tr>
            <th scope="col">{t.no}</th>
            <th scope="col">{t.ended}</th>
            <th scope="col">{t.started}</th>
            <th scope="col">{t.took}</th>
            <th scope="col">{t.outsideId}</th>
            <th scope="col">{t.error}</th>
          </tr>
        </thead>
        <tbody>
          {attempts.toReversed().map((attempt) => (
            <tr key={attempt.no}>
              <td>{attempt.no}</td>
              <td>
                <StatusBadge status={attempt.outcome} />
              </td>
              <td>
                <Time at={attempt.started_at} />
              </td>
              <td>
                <Took attempt={attempt} />
              </td>
              <td>
                <code>{attempt.outside_id === null ? '–' : <MaskedText text={attempt.outside_id} />}</code>
              </td>
              <td>
                <MaskedText text={attempt.error ?? '–'} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Took({ attempt }: Readonly<{ attempt: Attempt }>) {
  const [{ language }] = usePreferences();
  const { started_at: start, ended_at: end } = attempt;
  if (start === null || end === null) return '–';
  const ms = Math.max(0, Date.parse(end) - Date.parse(start));
  return ms < 10_000 ? `${ms} ms` : formatDuration(ms, language);
}

function LastAnswer({ order }: Readonly<{ order: OrderDetails }>) {
  const t = useText(ordersTexts);
  const answer = answerOf(order);
  if (order.response_omitted === true) return <p>{t.answerOmitted}</p>;
  if (answer === null) return null;
  return (
    <>
      <h3>{t.answer}</h3>
      <Definitions
        items={[
          { term: t.answerStatus, value: answer.status },
          {
            term: t.outsideId,
            value: answer.broker_order_id === null ? null : <MaskedText text={answer.broker_order_id} />,
          },
          { term: t.answerDigest, value: answer.digest === null ? null : <code>{answer.digest}</code> },
        ]}
      />
      <p className={styles['hint']}>
        {t.answerKept} {t.sentAsHint}
      </p>
    </>
  );
}
