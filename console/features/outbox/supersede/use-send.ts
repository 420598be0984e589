import { useBlocker, useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { useApi } from '../../../components/session/api-context.ts';
import { useText } from '../../../components/text/use-text.ts';
import { useToast } from '../../../components/toast/toasts.tsx';
import type { Operations, OrderDetails } from '../../../lib/server-shapes.ts';
import { orderPath, type OrderHandle } from '../orders/use-order.ts';
import { bodyOf, type Correction } from './correction.ts';
import { supersedeTexts } from './texts/supersede-texts.ts';

type Superseded = Operations['supersedeOrder']['answer'];
type State = Readonly<{ isBusy: boolean; isTried: boolean; error: Error | null }>;
type Options = Readonly<{ order: OrderDetails; handle: OrderHandle; isChanged: boolean }>;

/**
 * Sends the correction and leaves for the new order; until then leaving with changes asks. Pressing again after a lost
 * answer is safe: the same key and request get the first answer.
 */
export function useSend({ order, handle, isChanged }: Options) {
  const t = useText(supersedeTexts);
  const api = useApi();
  const navigate = useNavigate();
  const toast = useToast();
  const isDone = useRef(false);
  const [state, setState] = useState<State>({ isBusy: false, isTried: false, error: null });
  useBlocker({
    // oxlint-disable-next-line no-alert -- The browser asks the same question when the tab is closed.
    shouldBlockFn: () => isChanged && !isDone.current && !window.confirm(t.leave),
    enableBeforeUnload: () => isChanged && !isDone.current,
  });
  const send = async (correction: Correction, canSend: boolean): Promise<void> => {
    if (state.isBusy) return;
    setState({ isBusy: canSend, isTried: true, error: null });
    if (!canSend) return;
    try {
      const { value } = await api.send<Superseded>('POST', `${orderPath(order.id)}/supersede`, {
        bodyText: bodyOf(correction),
        idempotencyKey: correction.key,
      });
      isDone.current = true;
      toast({ text: t.done(String(value.id)) });
      await handle.readAgain();
      await navigate({ to: `/outbox/orders/${value.id}`, search: {} });
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      setState({ isBusy: false, isTried: true, error });
      await handle.readAgain();
    }
  };
  return { ...state, send };
}
