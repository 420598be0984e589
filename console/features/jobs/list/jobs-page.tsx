import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useContext, useEffect, useMemo, useState } from 'react';
import { copyText } from '../../../components/button/copy-text.ts';
import { FilterBox } from '../../../components/filter/filter-box.tsx';
import { NoMatch } from '../../../components/filter/no-match.tsx';
import { StatusFacets } from '../../../components/filter/status-facets.tsx';
import type { MoreRows } from '../../../components/list/list-foot.tsx';
import { ListTable } from '../../../components/list/list-table.tsx';
import { usePagedRows } from '../../../components/list/use-paged-rows.ts';
import { Page } from '../../../components/navigation/page.tsx';
import { PeekLayout } from '../../../components/peek/peek-layout.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { ClockContext } from '../../../components/time/clock.ts';
import { parseFilter } from '../../../lib/filter/filter.ts';
import { toQuery } from '../../../lib/filter/qualifiers.ts';
import { keepIds } from '../../../lib/kept-ids.ts';
import { keepList } from '../../../lib/kept-list.ts';
import { nothingSelected, selectAllMatching, type Selection } from '../../../lib/selection/selection.ts';
import type { JobFacets, Operations } from '../../../lib/server-shapes.ts';
import { JobPeek } from '../job/job-peek.tsx';
import { listedFields, nameOf, type ListedJob } from '../job-words.ts';
import { DeadView } from './dead-view.tsx';
import { useJobColumns } from './job-columns.tsx';
import { jobQualifiers } from './job-qualifiers.ts';
import { JobSelection } from './job-selection.tsx';
import { ListViews } from './list-views.tsx';
import { listTexts } from './texts/list-texts.ts';

type JobList = Operations['listJobs']['answer'];
type Parameters = readonly (readonly [string, string])[];

const asked: Parameters = listedFields.map((field) => ['fields', field] as const);
const everyMs = 5000;

/** Jobs of all queues: searched, previewed, selected; or what is dead, by its causes. */
export function JobsPage() {
  const t = useText(listTexts);
  const { view } = useSearch({ strict: false });
  return (
    <Page title={t.jobs}>
      <ListViews />
      {view === 'dead' ? <DeadView /> : <AllJobs />}
    </Page>
  );
}

function AllJobs() {
  const t = useText(listTexts);
  const { q = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const clock = useContext(ClockContext);
  // Ages count back from when the filter was applied, so that the pages of one list belong together.
  const query = useMemo(() => toQuery(parseFilter(q), jobQualifiers, clock.now()), [q, clock]);
  const { loaded, more, refetch } = usePagedRows<JobList, ListedJob>({
    key: ['jobs', 'list'],
    path: '/api/v1/jobs',
    parameters: query.isValid ? [...query.parameters, ...asked] : [],
    rowsOf: ({ jobs }) => jobs,
    whyEmpty: q === '' ? 'nothing' : 'filter',
    isEnabled: query.isValid,
    everyMs,
  });
  const facets = useFacets(query.isValid ? query.parameters : null);
  const apply = (filter: string): void => void navigate({ to: '/jobs/list', search: { q: filter } });
  return (
    <>
      <FilterBox value={q} onApply={apply} qualifiers={jobQualifiers} counts={facets?.facets ?? {}} />
      {facets === undefined ? null : (
        <StatusFacets
          label={t.status}
          qualifier="status"
          counts={facets.facets.status}
          isEstimate={facets.total_is_estimate === true}
          isSingle
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
              <EmptyState title={t.noJobs}>
                <p>{t.noJobsHint}</p>
              </EmptyState>
            )
          }
        >
          {(jobs, isRefreshing) => (
            <JobsTable key={q} filter={q} jobs={jobs} more={more} isRefreshing={isRefreshing} />
          )}
        </LoadedPanel>
      ) : null}
    </>
  );
}

function useFacets(parameters: Parameters | null): JobFacets | undefined {
  const api = useApi();
  // One status chosen still leaves the counts of the others to choose from.
  const search = new URLSearchParams(
    (parameters ?? []).filter(([name]) => name !== 'status').map(([name, value]) => [name, value]),
  ).toString();
  const { data } = useQuery({
    queryKey: ['jobs', 'facets', search],
    queryFn: ({ signal }) =>
      api.get<JobFacets>(`/api/v1/jobs/facets${search === '' ? '' : `?${search}`}`, signal),
    enabled: parameters !== null,
    placeholderData: (last) => last,
    refetchInterval: everyMs,
  });
  return data;
}

type TableProps = Readonly<{
  filter: string;
  jobs: readonly ListedJob[];
  more: MoreRows;
  isRefreshing: boolean;
}>;

function JobsTable({ filter, jobs, more, isRefreshing }: TableProps) {
  const t = useText(listTexts);
  const api = useApi();
  const navigate = useNavigate();
  const { peek = '' } = useSearch({ strict: false });
  const [selection, setSelection] = useState<Selection>(nothingSelected);
  const columns = useJobColumns(peek !== '');
  useEffect(() => keepList('jobs', { filter, ids: jobs.map(({ job_id: id }) => id) }), [filter, jobs]);
  const setPeek = (id: string | null): void =>
    void navigate({
      to: '.',
      search: { ...(filter === '' ? {} : { q: filter }), ...(id === null ? {} : { peek: id }) },
      replace: true,
    });
  return (
    <PeekLayout
      label={t.preview}
      pane={peek === '' ? null : <JobPeek key={peek} id={peek} />}
      onClose={() => setPeek(null)}
    >
      <ListTable
        caption={t.listCaption}
        rows={jobs}
        idOf={({ job_id: id }) => id}
        nameOf={(job) => `${job.queue} ${nameOf(job)}`}
        linkOf={({ job_id: id }) => ({ to: `/jobs/list/${id}` })}
        columns={columns}
        more={more}
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
          actions: <JobSelection selection={selection} total={more.total} />,
        }}
        rowKeys={{
          r: ({ job_id: id }) => {
            const ids = selection.kind === 'some' ? [...selection.ids] : [id];
            void navigate({ to: '/jobs/requeue', search: { from: keepIds(ids) } });
          },
          y: ({ job_id: id }) => void copyText(id),
          Y: ({ job_id: id }) => void copyText(location.origin + api.url(`/jobs/list/${id}`)),
        }}
      />
    </PeekLayout>
  );
}
