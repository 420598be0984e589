import { useContext, useMemo, useSyncExternalStore } from 'react';
import type { Column } from '../../../components/list/column.ts';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { ClockContext } from '../../../components/time/clock.ts';
import { Time } from '../../../components/time/time.tsx';
import type { Order } from '../../../lib/server-shapes.ts';
import { useDestinations } from '../use-destinations.ts';
import { OrderStatus } from './order-status.tsx';
import { answerOf, isInDoubt } from './order-words.ts';
import { ordersTexts } from './texts/orders-texts.ts';

/** Beside a preview there is room for what tells rows apart; the preview has the rest. */
export function useOrderColumns(isNarrow: boolean): readonly Column<Order>[] {
  const t = useText(ordersTexts);
  const { data } = useDestinations(false);
  return useMemo(() => {
    const most = new Map(data?.destinations.map(({ name, retry_max: max }) => [name, max]));
    const retriesOf = ({ destination, retry_count: used }: Order): string => {
      const max = most.get(destination) ?? null;
      return max === null ? String(used) : `${used}/${max}`;
    };
    const columns: readonly Column<Order>[] = [
      {
        id: 'status',
        title: t.status,
        width: '160px',
        textOf: (order) => `${order.status} ${order.resolution ?? ''} ${isInDoubt(order)} ${order.held}`,
        render: (order) => <OrderStatus order={order} />,
      },
      { id: 'destination', title: t.destination, width: '10%', render: ({ destination }) => destination },
      {
        id: 'lane',
        title: t.orderingKey,
        width: '9%',
        render: ({ ordering_key: key }) => (key === null ? '–' : <MaskedText text={key} />),
      },
      {
        id: 'key',
        title: t.key,
        width: isNarrow ? '26%' : '16%',
        isPrimary: true,
        render: ({ idempotency_key: key }) => <MaskedText text={key} />,
      },
      {
        id: 'retries',
        title: t.retries,
        width: '92px',
        isNumber: true,
        textOf: ({ retry_count: used }) => String(used),
        render: retriesOf,
      },
      {
        id: 'next',
        title: t.next,
        width: '104px',
        textOf: ({ next_attempt_at: at }) => at ?? '',
        render: (order) => <NextAttempt order={order} />,
      },
      { id: 'outcome', title: t.outcome, render: (order) => <Outcome order={order} /> },
      {
        id: 'age',
        title: t.age,
        width: isNarrow ? '76px' : '152px',
        render: ({ created_at: at }) => <Time at={at} show={isNarrow ? 'age' : 'both'} />,
      },
    ];
    return isNarrow ? columns.filter(({ id }) => !besidePreview.has(id)) : columns;
  }, [t, data, isNarrow]);
}

/** Columns that the preview shows as well. */
const besidePreview: ReadonlySet<string> = new Set(['lane', 'retries', 'next']);

/** Counts down; a blocked order waits for another one, not for a time. */
function NextAttempt({ order }: Readonly<{ order: Order }>) {
  const t = useText(ordersTexts);
  const clock = useContext(ClockContext);
  const at = order.held ? null : order.next_attempt_at;
  const isDue = useSyncExternalStore(clock.subscribe, () => at !== null && Date.parse(at) <= clock.now());
  return isDue ? t.due : <Time at={at} show="age" />;
}

function Outcome({ order }: Readonly<{ order: Order }>) {
  const t = useText(ordersTexts);
  const answer = answerOf(order);
  if (order.last_error !== null) return <MaskedText text={order.last_error} />;
  if (answer === null) return order.status === 'sent' ? t.accepted : t.notSent;
  const { status, broker_order_id: outsideId } = answer;
  const parts = [status === null ? t.accepted : t.answered(String(status)), outsideId];
  return <MaskedText text={parts.filter((part) => part !== null).join(' · ')} />;
}
