import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useContext, useEffect, useMemo, useState } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { copyText } from '../../../components/button/copy-text.ts';
import { ConfirmDialog } from '../../../components/dialog/confirm-dialog.tsx';
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
import {
  countSelected,
  nothingSelected,
  selectAllMatching,
  type Selection,
} from '../../../lib/selection/selection.ts';
import type { Operations, SagaFacets } from '../../../lib/server-shapes.ts';
import { sagaList } from '../saga-list.ts';
import { sagasTexts } from '../texts/sagas-texts.ts';
import styles from './list.module.css';
import { retryCriteriaOf } from './retry-criteria.ts';
import { listedFields, useSagaColumns, type SagaRow } from './saga-columns.tsx';
import { SagaPeek } from './saga-peek.tsx';
import { sagaQualifiers } from './saga-qualifiers.ts';
import { listTexts } from './texts/list-texts.ts';
import { useBulkRetry } from './use-bulk-retry.tsx';
import { useReadAgain } from './use-read-again.ts';

type SagaList = Operations['listSagas']['answer'];
type Parameters = readonly (readonly [string, string])[];

const fields: Parameters = listedFields.map((field) => ['fields', field]);

/** Sagas: how far they are, and which need somebody. */
export function SagasPage() {
  const t = useText(listTexts);
  const all = useText(sagasTexts);
  const { q = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const query = useParameters(q);
  const load = useReadAgain();
  const { loaded, more, refetch, live } = usePagedRows<SagaList, SagaRow>({
    key: ['sagas', 'list'],
    path: '/api/v1/sagas',
    parameters: query.isValid ? [...query.parameters, ...fields] : fields,
    rowsOf: ({ sagas }) => sagas,
    whyEmpty: q === '' ? 'nothing' : 'filter',
    isEnabled: query.isValid,
    live: { slices: ['sagas'], idOf: ({ saga_id: id }) => id, load },
  });
  const facets = useFacets(query.isValid ? query.parameters : null);
  const apply = (filter: string): void => void navigate({ to: '/sagas', search: { q: filter } });
  return (
    <Page title={all.sagas} actions={<Button onPress={refetch}>{t.reload}</Button>}>
      <FilterBox value={q} onApply={apply} qualifiers={sagaQualifiers} counts={facets?.facets ?? {}} />
      {facets === undefined ? null : <Facets facets={facets} filter={q} onApply={apply} />}
      {query.isValid ? (
        <LoadedPanel
          loaded={loaded}
          onRetry={refetch}
          renderEmpty={(reason) =>
            reason === 'filter' ? (
              <NoMatch filter={q} onApply={apply} />
            ) : (
              <EmptyState title={t.noSagas}>
                <p>{t.noSagasHint}</p>
                <p>{t.howToStart}</p>
                <pre>{'npx redrive saga register workflow.yaml\nnpx redrive saga start <workflow>'}</pre>
              </EmptyState>
            )
          }
        >
          {(sagas, isRefreshing) => (
            <SagasTable
              key={q}
              filter={q}
              sagas={sagas}
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
  return useMemo(() => toQuery(parseFilter(q), sagaQualifiers, clock.now()), [q, clock]);
}

/** Values that occur among what matches, to choose a filter from. */
function useFacets(parameters: Parameters | null): SagaFacets | undefined {
  const api = useApi();
  const search = new URLSearchParams((parameters ?? []).map(([name, value]) => [name, value])).toString();
  const { data, refetch } = useQuery({
    queryKey: ['sagas', 'facets', search],
    queryFn: ({ signal }) =>
      api.get<SagaFacets>(`/api/v1/sagas/facets${search === '' ? '' : `?${search}`}`, signal),
    enabled: parameters !== null,
    placeholderData: (last) => last,
  });
  useLiveReading({ slices: parameters === null ? [] : ['sagas'], read: () => refetch() });
  return data;
}

function Facets(props: Readonly<{ facets: SagaFacets; filter: string; onApply: (filter: string) => void }>) {
  const { facets, filter, onApply } = props;
  const all = useText(sagasTexts);
  const isEstimate = facets.total_is_estimate === true;
  return (
    <div className={styles['bar']}>
      <StatusFacets
        label={all.status}
        qualifier="status"
        counts={facets.facets.status}
        isEstimate={isEstimate}
        filter={filter}
        onApply={onApply}
      />
      <StatusFacets
        label={all.stuck}
        qualifier="is"
        counts={[{ value: 'stuck', count: facets.needs_attention }]}
        isEstimate={isEstimate}
        filter={filter}
        onApply={onApply}
      />
    </div>
  );
}

type TableProps = Readonly<{
  filter: string;
  sagas: readonly SagaRow[];
  more: MoreRows;
  isRefreshing: boolean;
  live: ListLive<SagaRow> | undefined;
}>;

function SagasTable({ filter, sagas, more, isRefreshing, live }: TableProps) {
  const t = useText(listTexts);
  const api = useApi();
  const navigate = useNavigate();
  const { peek = '' } = useSearch({ strict: false });
  const [selection, setSelection] = useState<Selection>(nothingSelected);
  const retry = useBulkRetry();
  const columns = useSagaColumns(peek !== '');
  useEffect(() => keepList(sagaList, { filter, ids: sagas.map(({ saga_id: id }) => id) }), [filter, sagas]);
  const setPeek = (id: string | null): void =>
    void navigate({
      to: '.',
      search: { ...(filter === '' ? {} : { q: filter }), ...(id === null ? {} : { peek: id }) },
      replace: true,
    });
  return (
    <PeekLayout
      label={t.preview}
      pane={peek === '' ? null : <SagaPeek key={peek} id={peek} />}
      onClose={() => setPeek(null)}
    >
      <ListTable
        caption={t.caption}
        rows={sagas}
        idOf={({ saga_id: id }) => id}
        nameOf={({ workflow_name: name, saga_id: id }) => `${name} ${id.slice(0, 8)}`}
        linkOf={({ saga_id: id }) => ({ to: `/sagas/${id}` })}
        columns={columns}
        more={more}
        live={live}
        isRefreshing={isRefreshing}
        initialCursor={peek}
        peek={{ id: peek === '' ? null : peek, onChange: setPeek }}
        {...(peek === '' ? {} : { onCursor: setPeek })}
        selection={{
          value: selection,
          onChange: setSelection,
          matching: {
            total: more.total,
            select: () => selectAllMatching(filter, new Date().toISOString()),
          },
          actions: <RetrySelected selection={selection} total={more.total} retry={retry} />,
        }}
        rowKeys={{
          r: ({ saga_id: id }) => void retry.ask({ saga_ids: [id] }),
          y: ({ saga_id: id }) => void copyText(id),
          Y: ({ saga_id: id }) => void copyText(location.origin + api.url(`/sagas/${id}`)),
        }}
      />
      <ConfirmDialog confirmation={retry.confirmation} onEnd={retry.end} />
    </PeekLayout>
  );
}

type RetryProps = Readonly<{
  selection: Selection;
  total: number | null;
  retry: ReturnType<typeof useBulkRetry>;
}>;

/** Many sagas never act at once: the server says first what would happen. */
function RetrySelected({ selection, total, retry }: RetryProps) {
  const t = useText(listTexts);
  const criteria = retryCriteriaOf(selection);
  const refusal = selection.kind === 'some' ? t.tooManyNamed : t.cannotRetry;
  return (
    <Button
      kind="primary"
      isBusy={retry.isAsking}
      disabledReason={retry.refusal ?? (criteria === null ? refusal : undefined)}
      onPress={() => {
        if (criteria !== null) void retry.ask(criteria);
      }}
    >
      {t.retryStuck(countSelected(selection, total))}
    </Button>
  );
}
