import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
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
import { useApi } from '../../../components/session/api-context.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { parseFilter } from '../../../lib/filter/filter.ts';
import { toQuery } from '../../../lib/filter/qualifiers.ts';
import type { Group, MessageFacets, Operations } from '../../../lib/server-shapes.ts';
import { useGroupColumns } from './group-columns.tsx';
import { groupQualifiers } from './group-qualifiers.ts';
import { groupsTexts } from './texts/groups-texts.ts';

type GroupList = Operations['listGroups']['answer'];

/** What fails and why: dead letters by their cause. */
export function GroupsPage() {
  const t = useText(groupsTexts);
  const { q = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  // No qualifier of groups is an age.
  const query = toQuery(parseFilter(q), groupQualifiers, 0);
  const { loaded, more, refetch, live } = usePagedRows<GroupList, Group>({
    key: ['dlq', 'groups'],
    path: '/api/v1/dlq/groups',
    parameters: query.isValid ? query.parameters : [],
    rowsOf: ({ groups }) => groups,
    whyEmpty: q === '' ? 'nothing' : 'filter',
    isEnabled: query.isValid,
    live: { slices: ['dlq'], idOf: ({ fingerprint }) => fingerprint },
  });
  const facets = useFacets();
  const apply = (filter: string): void => void navigate({ to: '/dlq/groups', search: { q: filter } });
  return (
    <Page title={t.groups}>
      <FilterBox value={q} onApply={apply} qualifiers={groupQualifiers} counts={facets?.facets ?? {}} />
      {facets === undefined ? null : (
        <StatusFacets
          label={t.status}
          qualifier="status"
          isSingle
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
              <EmptyState title={t.nothingFailed}>
                <p>{t.nothingFailedHint}</p>
              </EmptyState>
            )
          }
        >
          {(groups, isRefreshing) => (
            <GroupsTable groups={groups} more={more} isRefreshing={isRefreshing} live={live} />
          )}
        </LoadedPanel>
      ) : null}
    </Page>
  );
}

type TableProps = Readonly<{
  groups: readonly Group[];
  more: MoreRows;
  isRefreshing: boolean;
  live: ListLive<Group> | undefined;
}>;

function GroupsTable(props: TableProps) {
  const t = useText(groupsTexts);
  const api = useApi();
  const navigate = useNavigate();
  const columns = useGroupColumns();
  return (
    <ListTable
      {...props}
      caption={t.listCaption}
      rows={props.groups}
      idOf={(group) => group.fingerprint}
      nameOf={(group) => group.title}
      linkOf={(group) => ({ to: groupPath(group.fingerprint) })}
      columns={columns}
      initialCursor=""
      rowKeys={{
        r: ({ fingerprint }) => void navigate({ to: '/dlq/redrives/new', search: { fingerprint } }),
        y: ({ fingerprint }) => void copyText(fingerprint),
        Y: ({ fingerprint }) => void copyText(location.origin + api.url(groupPath(fingerprint))),
      }}
    />
  );
}

function groupPath(fingerprint: string): string {
  return `/dlq/groups/${encodeURIComponent(fingerprint)}`;
}

/** Values that occur, to choose a filter from. */
function useFacets(): MessageFacets | undefined {
  const api = useApi();
  const { data, refetch } = useQuery({
    queryKey: ['dlq', 'facets', ''],
    queryFn: ({ signal }) => api.get<MessageFacets>('/api/v1/dlq/messages/facets', signal),
  });
  useLiveReading({ slices: ['dlq'], read: () => refetch() });
  return data;
}
