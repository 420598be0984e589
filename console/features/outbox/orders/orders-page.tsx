import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useContext, useEffect, useMemo } from 'react';
import { copyText } from '../../../components/button/copy-text.ts';
import { FilterBox } from '../../../components/filter/filter-box.tsx';
import { NoMatch } from '../../../components/filter/no-match.tsx';
import { StatusFacets } from '../../../components/filter/status-facets.tsx';
import type { MoreRows } from '../../../components/list/list-foot.tsx';
import { ListTable } from '../../../components/list/list-table.tsx';
import type { ListLive } from '../../../components/list/use-live-rows.ts';
import { usePagedRows } from '../../../components/list/use-paged-rows.ts';
import { useLiveReading } from '../../../components/live/use-live-reading.ts';
import { Page } from '../../../components/navigation/page.tsx';
import { PeekLayout } from '../../../components/peek/peek-layout.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { ClockContext } from '../../../components/time/clock.ts';
import { parseFilter } from '../../../lib/filter/filter.ts';
import { toQuery } from '../../../lib/filter/qualifiers.ts';
import { keepList } from '../../../lib/kept-list.ts';
import type { Operations, Order, OrderFacets } from '../../../lib/server-shapes.ts';
import { useOrderColumns } from './order-columns.tsx';
import { OrderPeek } from './order-peek.tsx';
import { orderQualifiers } from './order-qualifiers.ts';
import { useReadAgain } from './use-read-again.ts';
import { ordersTexts } from './texts/orders-texts.ts';

type OrderList = Operations['listOrders']['answer'];
type Parameters = readonly (readonly [string, string])[];

/** Orders: searched, previewed, opened. */
export function OrdersPage() {
  const t = useText(ordersTexts);
  const { q = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const query = useParameters(q);
  const load = useReadAgain();
  const { loaded, more, refetch, live } = usePagedRows<OrderList, Order>({
    key: ['outbox', 'orders'],
    path: '/api/v1/outbox/orders',
    parameters: query.isValid ? query.parameters : [],
    rowsOf: ({ orders }) => orders,
    whyEmpty: q === '' ? 'nothing' : 'filter',
    isEnabled: query.isValid,
    live: { slices: ['outbox'], idOf: ({ id }) => String(id), load },
  });
  const facets = useFacets(query.isValid ? query.parameters : null);
  const apply = (filter: string): void => void navigate({ to: '/outbox/orders', search: { q: filter } });
  return (
    <Page title={t.orders}>
      <FilterBox value={q} onApply={apply} qualifiers={orderQualifiers} counts={facets?.facets ?? {}} />
      {facets === undefined ? null : (
        <StatusFacets
          label={t.status}
          qualifier="status"
          counts={facets.facets.status}
          isEstimate={facets.total_is_estimate === true}
          filter={q}
          onApply={apply}
        />
      )}
      {query.isValid ? (
        <LoadedPanel
          loaded={loaded}
          onRetry={refetch}
          renderEmpty={(reason) =>
            reason === 'filter' ? (
              <NoMatch filter={q} onApply={apply} />
            ) : (
              <EmptyState title={t.noOrders}>
                <p>{t.noOrdersHint}</p>
              </EmptyState>
            )
          }
        >
          {(orders, isRefreshing) => (
            <OrdersTable
              key={q}
              filter={q}
              orders={orders}
              more={more}
              isRefreshing={isRefreshing}
              live={live}
            />
          )}
        </LoadedPanel>
      ) : null}
    </Page>
  );
}

/** Ages count back from when the filter was applied, so that the pages of one list belong together. */
function useParameters(q: string) {
  const clock = useContext(ClockContext);
  return useMemo(() => toQuery(parseFilter(q), orderQualifiers, clock.now()), [q, clock]);
}

/** Values that occur among what matches, to choose a filter from. */
function useFacets(parameters: Parameters | null): OrderFacets | undefined {
  const api = useApi();
  const search = new URLSearchParams((parameters ?? []).map(([name, value]) => [name, value])).toString();
  const { data, refetch } = useQuery({
    queryKey: ['outbox', 'facets', search],
    queryFn: ({ signal }) =>
      api.get<OrderFacets>(`/api/v1/outbox/orders/facets${search === '' ? '' : `?${search}`}`, signal),
    enabled: parameters !== null,
    placeholderData: (last) => last,
  });
  useLiveReading({ slices: parameters === null ? [] : ['outbox'], read: () => refetch() });
  return data;
}

type TableProps = Readonly<{
  filter: string;
  orders: readonly Order[];
  more: MoreRows;
  isRefreshing: boolean;
  live: ListLive<Order> | undefined;
}>;

function OrdersTable({ filter, orders, more, isRefreshing, live }: TableProps) {
  const t = useText(ordersTexts);
  const api = useApi();
  const navigate = useNavigate();
  const { peek = '' } = useSearch({ strict: false });
  const columns = useOrderColumns(peek !== '');
  useEffect(() => keepList('orders', { filter, ids: orders.map(({ id }) => String(id)) }), [filter, orders]);
  const setPeek = (id: string | null): void =>
    void navigate({
      to: '.',
      search: { ...(filter === '' ? {} : { q: filter }), ...(id === null ? {} : { peek: id }) },
      replace: true,
    });
  return (
    <PeekLayout
      label={t.preview}
      pane={peek === '' ? null : <OrderPeek key={peek} id={peek} />}
      onClose={() => setPeek(null)}
    >
      <ListTable
        caption={t.listCaption}
        rows={orders}
        idOf={({ id }) => String(id)}
        nameOf={({ idempotency_key: key }) => key}
        linkOf={({ id }) => ({ to: `/outbox/orders/${id}` })}
        columns={columns}
        more={more}
        isRefreshing={isRefreshing}
        live={live}
        initialCursor=""
        peek={{ id: peek === '' ? null : peek, onChange: setPeek }}
        {...(peek === '' ? {} : { onCursor: setPeek })}
        rowKeys={{
          y: ({ id }) => void copyText(String(id)),
          Y: ({ id }) => void copyText(location.origin + api.url(`/outbox/orders/${id}`)),
        }}
      />
    </PeekLayout>
  );
}
