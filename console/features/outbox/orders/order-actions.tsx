import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { ConfirmDialog } from '../../../components/dialog/confirm-dialog.tsx';
import {
  reasonField,
  type Confirmation,
  type ConfirmationField,
} from '../../../components/dialog/confirmation.ts';
import { usePageKeys } from '../../../components/navigation/use-page-keys.ts';
import { useApi } from '../../../components/session/api-context.ts';
import { useSession } from '../../../components/session/session.tsx';
import { useMay } from '../../../components/session/use-may.ts';
import { useText } from '../../../components/text/use-text.ts';
import { useToast } from '../../../components/toast/toasts.tsx';
import { isProduction } from '../../../lib/page-facts.ts';
import type { OrderDetails } from '../../../lib/server-shapes.ts';
import { isInDoubt } from './order-words.ts';
import styles from './orders.module.css';
import { ordersTexts } from './texts/orders-texts.ts';
import { useBehindText } from './use-behind-text.ts';
import { orderPath, type OrderHandle } from './use-order.ts';

type Props = Readonly<{ order: OrderDetails; handle: OrderHandle }>;

/** What a person decides about an order. What its status does not allow stays visible, with the reason. */
export function OrderActions({ order, handle }: Props) {
  const t = useText(ordersTexts);
  const navigate = useNavigate();
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const cancel = useCancel(order, handle);
  const skip = useSkip(order, handle);
  const supersede = useSupersedeReason(order);
  const toSupersede = (): void => void navigate({ to: `/outbox/orders/${order.id}/supersede` });
  const isDead = order.status === 'dead';
  usePageKeys({ e: supersede === undefined ? toSupersede : undefined });
  return (
    <>
      <Button kind={isDead ? 'primary' : 'plain'} keys="e" disabledReason={supersede} onPress={toSupersede}>
        {t.supersede}
      </Button>
      <Button kind="danger" disabledReason={skip.reason} onPress={() => setConfirmation(skip.confirmation)}>
        {t.skip}
      </Button>
      <Button
        kind="danger"
        disabledReason={cancel.reason}
        onPress={() => setConfirmation(cancel.confirmation)}
      >
        {t.cancel}
      </Button>
      <ConfirmDialog confirmation={confirmation} onEnd={() => setConfirmation(null)} />
    </>
  );
}

type Decision = Readonly<{ reason: string | undefined; confirmation: Confirmation }>;

/** The same for skip and supersede: the server refuses both for the same reasons. */
function useDeadReason({ archived, resolution, status }: OrderDetails): string | undefined {
  const t = useText(ordersTexts);
  if (archived) return t.isArchived;
  if (resolution !== null) return t.isResolved(resolution);
  return status === 'dead' ? undefined : t.onlyDead(status);
}

export function useSupersedeReason(order: OrderDetails): string | undefined {
  const t = useText(ordersTexts);
  const may = useMay('outbox:orders:supersede');
  const dead = useDeadReason(order);
  const isMasked = order.masked === true || order.request_omitted === true;
  return dead ?? may.reason ?? (isMasked ? t.isMasked : undefined);
}

function useSkip(order: OrderDetails, handle: OrderHandle): Decision {
  const t = useText(ordersTexts);
  const may = useMay('outbox:orders:skip');
  const dead = useDeadReason(order);
  const behind = useBehindText(order.lane);
  const frees = order.lane === null || order.lane.behind === 0 ? null : t.skipFrees(behind);
  const decide = useDecide(order, handle);
  const key = order.idempotency_key;
  return {
    reason: dead ?? may.reason,
    confirmation: {
      ...decide('skip', t.skipped),
      title: t.skipTitle(key),
      action: t.skipTitle(key),
      consequence: <Consequence order={order} lines={[t.skipConsequence, frees]} />,
    },
  };
}

function useCancel(order: OrderDetails, handle: OrderHandle): Decision {
  const t = useText(ordersTexts);
  const may = useMay('outbox:orders:cancel');
  const decide = useDecide(order, handle);
  const { archived, status, resolution, idempotency_key: key } = order;
  const isWaiting = status === 'queued' || status === 'failed';
  return {
    reason: archived
      ? t.isArchived
      : resolution !== null
        ? t.isResolved(resolution)
        : isWaiting
          ? may.reason
          : t.onlyWaiting(status),
    confirmation: {
      ...decide('cancel', t.cancelled),
      title: t.cancelTitle(key),
      action: t.cancelTitle(key),
      consequence: <Consequence order={order} lines={[t.cancelConsequence]} />,
    },
  };
}

/** Nothing brings the order back: a reason, the key typed in production, and the effect checked if it is in doubt. */
function useDecide(order: OrderDetails, handle: OrderHandle) {
  const t = useText(ordersTexts);
  const api = useApi();
  const toast = useToast();
  const checked = useEffectChecked(order);
  const { environment } = useSession().me;
  return (
    verb: 'skip' | 'cancel',
    done: string,
  ): Pick<Confirmation, 'isDangerous' | 'fields' | 'perform'> & Readonly<{ typed?: string }> => ({
    isDangerous: true,
    fields: [...checked, reasonField(t.reason, t.reasonHint)],
    ...(isProduction(environment) ? { typed: order.idempotency_key } : {}),
    perform: async ({ reason = '', effect_checked: isChecked = '' }) => {
      try {
        await api.send('POST', `${orderPath(order.id)}/${verb}`, {
          body: { reason, ...(isChecked === 'true' ? { effect_checked: true } : {}) },
        });
        toast({ text: done });
      } finally {
        await handle.readAgain();
      }
    },
  });
}

function useEffectChecked(order: OrderDetails): readonly ConfirmationField[] {
  const t = useText(ordersTexts);
  if (!isInDoubt(order)) return [];
  return [
    { name: 'effect_checked', label: t.checkedLabel, hint: t.checkedHint, kind: 'check', isRequired: true },
  ];
}

function Consequence(props: Readonly<{ order: OrderDetails; lines: readonly (string | null)[] }>) {
  const t = useText(ordersTexts);
  const lines = [...props.lines, isInDoubt(props.order) ? t.doubtTitle : null];
  return (
    <div className={styles['consequence']}>
      {lines
        .filter((line) => line !== null)
        .map((line) => (
          <p key={line}>{line}</p>
        ))}
    </div>
  );
}
