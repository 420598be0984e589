import { useState, type SubmitEvent } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { usePageKeys } from '../../../components/navigation/use-page-keys.ts';
import { useSession } from '../../../components/session/session.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { isProduction } from '../../../lib/page-facts.ts';
import type { OrderDetails } from '../../../lib/server-shapes.ts';
import { isInDoubt } from '../orders/order-words.ts';
import type { OrderHandle } from '../orders/use-order.ts';
import { nextKey, problemsOf, type Correction, type Original } from './correction.ts';
import { CorrectionFields } from './correction-fields.tsx';
import styles from './supersede.module.css';
import { supersedeTexts } from './texts/supersede-texts.ts';
import { useSend } from './use-send.ts';

type Props = Readonly<{
  order: OrderDetails;
  /** The request with a line per member. */
  original: string;
  /** Why the order cannot be superseded; it may have been decided about meanwhile. */
  refusal: string | undefined;
  handle: OrderHandle;
}>;

/** The original beside the corrected request. */
export function SupersedeForm({ order, original, refusal, handle }: Props) {
  const t = useText(supersedeTexts);
  const { environment } = useSession().me;
  const [first] = useState(original);
  const [correction, setCorrection] = useState<Correction>({
    request: first,
    key: nextKey(order.idempotency_key),
    reason: '',
    isChecked: false,
    typed: '',
  });
  const needs: Original = {
    key: order.idempotency_key,
    isInDoubt: isInDoubt(order),
    isTyped: isProduction(environment),
  };
  const problems = problemsOf(correction, needs);
  const isChanged = correction.request !== first || correction.reason !== '';
  const { send, isBusy, isTried, error } = useSend({ order, handle, isChanged });
  const submit = (): void => void send(correction, problems.length === 0 && refusal === undefined);
  usePageKeys({ '$mod+Enter': submit });
  return (
    <form
      className={styles['form']}
      onSubmit={(event: SubmitEvent) => {
        event.preventDefault();
        submit();
      }}
    >
      <p className={styles['hint']}>
        {t.linked} {order.ordering_key === null ? null : t.keepsPlace(order.ordering_key)}
      </p>
      <CorrectionFields
        original={first}
        needs={needs}
        correction={correction}
        problems={problems}
        isTried={isTried}
        onChange={(part) => setCorrection((before) => ({ ...before, ...part }))}
      />
      {error === null ? null : (
        <p role="alert" className={styles['error']}>
          {error.message}
        </p>
      )}
      <div className={styles['buttons']}>
        <Button type="submit" kind="primary" keys="Control+Enter" isBusy={isBusy} disabledReason={refusal}>
          {t.send(order.destination)}
        </Button>
        <LinkButton to={`/outbox/orders/${order.id}`}>{t.back}</LinkButton>
      </div>
    </form>
  );
}
