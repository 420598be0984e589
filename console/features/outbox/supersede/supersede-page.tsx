import { useParams } from '@tanstack/react-router';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { Page } from '../../../components/navigation/page.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { formatJson } from '../../../lib/exact-json/format-json.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import { useSupersedeReason } from '../orders/order-actions.tsx';
import { OrderNotices } from '../orders/order-notices.tsx';
import { OrderStatus } from '../orders/order-status.tsx';
import { useOrder, type LoadedOrder, type OrderHandle } from '../orders/use-order.ts';
import { SupersedeForm } from './supersede-form.tsx';
import { supersedeTexts } from './texts/supersede-texts.ts';

/** A corrected order in the place of a dead one. */
export function SupersedePage() {
  const t = useText(supersedeTexts);
  const { id = '' } = useParams({ strict: false });
  const handle = useOrder(id);
  const order = handle.query.data?.order;
  return (
    <Page
      title={t.title(id)}
      facts={order === undefined ? undefined : <OrderStatus order={order} isFilled />}
    >
      <LoadedPanel
        loaded={loadedOf(handle.query, () => null)}
        onRetry={() => void handle.readAgain()}
        renderEmpty={() => null}
      >
        {(loaded) => <Body loaded={loaded} handle={handle} />}
      </LoadedPanel>
    </Page>
  );
}

function Body({ loaded, handle }: Readonly<{ loaded: LoadedOrder; handle: OrderHandle }>) {
  const t = useText(supersedeTexts);
  const { order, requestText } = loaded;
  const reason = useSupersedeReason(order);
  if (requestText === null)
    return (
      <>
        <p role="alert">{reason}</p>
        <LinkButton to={`/outbox/orders/${order.id}`}>{t.back}</LinkButton>
      </>
    );
  const formatted = formatJson(requestText);
  const original = formatted.isJson ? formatted.text : requestText;
  return (
    <>
      <OrderNotices order={order} />
      <SupersedeForm order={order} original={original} refusal={reason} handle={handle} />
    </>
  );
}
