import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { CopyButton } from '../../../components/button/copy-button.tsx';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { Page } from '../../../components/navigation/page.tsx';
import { usePageKeys } from '../../../components/navigation/use-page-keys.ts';
import { Revealable } from '../../../components/protection/revealable.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { TabLinks } from '../../../components/tabs/tab-links.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { findNeighbours } from '../../../lib/kept-list.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import type { OrderDetails } from '../../../lib/server-shapes.ts';
import { Proof } from '../ledger/proof.tsx';
import { OrderActions } from './order-actions.tsx';
import { OrderAttempts } from './order-attempts.tsx';
import { OrderFacts } from './order-facts.tsx';
import { OrderHistory } from './order-history.tsx';
import { OrderNotices } from './order-notices.tsx';
import { OrderRequest } from './order-request.tsx';
import { OrderStatus } from './order-status.tsx';
import { ordersTexts } from './texts/orders-texts.ts';
import { loadedOrder, orderPath, useOrder, type LoadedOrder } from './use-order.ts';

const tabs = ['attempts', 'request', 'proof', 'history'] as const;
type Tab = (typeof tabs)[number];

/** One order: what was sent, what came back, whether its effect happened, and what can be done. */
export function OrderPage() {
  const t = useText(ordersTexts);
  const { id = '' } = useParams({ strict: false });
  const { tab: asked } = useSearch({ strict: false });
  const tab: Tab = tabs.find((one) => one === asked) ?? 'attempts';
  const handle = useOrder(id);
  const order = handle.query.data?.order;
  const neighbours = findNeighbours('orders', id);
  useOrderKeys(id, tab, neighbours);
  return (
    <Page
      title={t.orderOf(id)}
      facts={
        <>
          {order === undefined ? null : <OrderStatus order={order} isFilled />}
          <CopyButton what={t.id} text={id} />
          {neighbours === null ? null : (
            <LinkButton to="/outbox/orders" search={neighbours.filter === '' ? {} : { q: neighbours.filter }}>
              {t.placeOf(neighbours.place, neighbours.count)}
            </LinkButton>
          )}
        </>
      }
      actions={order === undefined ? undefined : <OrderActions order={order} handle={handle} />}
    >
      <LoadedPanel
        loaded={loadedOf(handle.query, () => null)}
        onRetry={() => void handle.readAgain()}
        renderEmpty={() => null}
      >
        {(loaded) => <Revealed id={id} tab={tab} loaded={loaded} />}
      </LoadedPanel>
    </Page>
  );
}

function useOrderKeys(id: string, tab: Tab, neighbours: ReturnType<typeof findNeighbours>): void {
  const navigate = useNavigate();
  const open = (to: Tab) => (): void =>
    void navigate({ to: `/outbox/orders/${id}`, search: { tab: to }, replace: true });
  const go = (to: string | null | undefined) => (): void => {
    if (to != null) void navigate({ to: `/outbox/orders/${to}`, search: { tab } });
  };
  usePageKeys({
    1: open('attempts'),
    2: open('request'),
    3: open('proof'),
    4: open('history'),
    'Shift+J': go(neighbours?.next),
    'Shift+K': go(neighbours?.previous),
  });
}

type PartsProps = Readonly<{ id: string; tab: Tab; loaded: LoadedOrder }>;

function Revealed({ id, tab, loaded }: PartsProps) {
  return (
    <>
      <OrderNotices order={loaded.order} />
      <Revealable<OrderDetails>
        key={id}
        isMasked={loaded.order.masked === true}
        path={`${orderPath(id)}/reveal`}
        permission="outbox:payloads:view"
      >
        {(revealed, text) => (
          <Parts
            id={id}
            tab={tab}
            loaded={revealed === null || text === null ? loaded : loadedOrder(revealed, text)}
          />
        )}
      </Revealable>
    </>
  );
}

function Parts({ id, tab, loaded }: PartsProps) {
  const t = useText(ordersTexts);
  const { order } = loaded;
  return (
    <>
      <OrderFacts order={order} />
      <TabLinks
        label={t.orderOf(id)}
        tabs={tabs.map((one, i) => ({
          to: `/outbox/orders/${id}`,
          search: { tab: one },
          label: { attempts: t.attempts, request: t.request, proof: t.proof, history: t.history }[one],
          count: one === 'attempts' ? order.attempts.length : null,
          hint: String(i + 1),
          isCurrent: tab === one,
        }))}
      />
      <Part tab={tab} loaded={loaded} />
    </>
  );
}

function Part({ tab, loaded: { order, requestText } }: Readonly<{ tab: Tab; loaded: LoadedOrder }>) {
  switch (tab) {
    case 'attempts':
      return <OrderAttempts order={order} />;
    case 'request':
      return <OrderRequest order={order} text={requestText} />;
    case 'proof':
      return <Proof ledgerKey={order.idempotency_key} />;
    case 'history':
      return <OrderHistory order={order} />;
  }
}
