import { useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { copyText } from '../../../components/button/copy-text.ts';
import { LinkButton } from '../../../components/button/link-button.tsx';
import type { Column } from '../../../components/list/column.ts';
import { ListTable } from '../../../components/list/list-table.tsx';
import { usePagedRows } from '../../../components/list/use-paged-rows.ts';
import { Page } from '../../../components/navigation/page.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { StatusBadge } from '../../../components/status/status-badge.tsx';
import { TabLinks } from '../../../components/tabs/tab-links.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import type { Operations } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { SelectionText } from './selection-text.tsx';
import { redrivesTexts } from './texts/redrives-texts.ts';

type RedriveList = Operations['listRedrives']['answer'];
type ListedRedrive = RedriveList['redrives'][number];

/** All redrives, those of people and those of retry policies. */
export function RedrivesPage() {
  const t = useText(redrivesTexts);
  const { by = '' } = useSearch({ strict: false });
  const columns = useColumns();
  const api = useApi();
  const { loaded, more, refetch, live } = usePagedRows<RedriveList, ListedRedrive>({
    key: ['dlq', 'redrives'],
    path: '/api/v1/dlq/redrives',
    parameters: by === 'people' || by === 'policies' ? [['automatic', String(by === 'policies')]] : [],
    rowsOf: ({ redrives }) => redrives,
    whyEmpty: 'nothing',
    live: { slices: [], areOwn: () => true, idOf: ({ id }) => id },
  });
  const tab = (name: string, label: string) => ({
    to: '/dlq/redrives',
    search: { by: name },
    label,
    isCurrent: by === name,
  });
  return (
    <Page title={t.redrives} actions={<PlanButton />}>
      <TabLinks
        label={t.madeBy}
        tabs={[tab('', t.allMade), tab('people', t.byPeople), tab('policies', t.byPolicies)]}
      />
      <LoadedPanel
        loaded={loaded}
        onRetry={refetch}
        renderEmpty={() => (
          <EmptyState title={t.noRedrives}>
            <p>{t.noRedrivesHint}</p>
          </EmptyState>
        )}
      >
        {(redrives, isRefreshing) => (
          <ListTable
            caption={t.listCaption}
            rows={redrives}
            idOf={({ id }) => id}
            nameOf={({ reason }) => reason}
            linkOf={({ id }) => ({ to: `/dlq/redrives/${id}` })}
            columns={columns}
            more={more}
            live={live}
            isRefreshing={isRefreshing}
            initialCursor=""
            rowKeys={{
              y: ({ id }) => void copyText(id),
              Y: ({ id }) => void copyText(location.origin + api.url(`/dlq/redrives/${id}`)),
            }}
          />
        )}
      </LoadedPanel>
    </Page>
  );
}

function PlanButton() {
  const t = useText(redrivesTexts);
  const may = useMay('dlq:redrives:plan');
  return may.isAllowed ? (
    <LinkButton to="/dlq/redrives/new" kind="primary">
      {t.planNew}
    </LinkButton>
  ) : (
    <Button kind="primary" disabledReason={may.reason}>
      {t.planNew}
    </Button>
  );
}

function useColumns(): readonly Column<ListedRedrive>[] {
  const t = useText(redrivesTexts);
  return useMemo(
    () => [
      {
        id: 'state',
        title: t.state,
        width: '132px',
        textOf: ({ state }) => state,
        render: ({ state }) => <StatusBadge status={state} />,
      },
      { id: 'reason', title: t.why, isPrimary: true, render: ({ reason }) => reason },
      { id: 'kind', title: t.what, width: '92px', render: ({ kind }) => t[kind] },
      {
        id: 'selection',
        title: t.selection,
        width: '26%',
        render: ({ filter }) => <SelectionText filter={filter} />,
      },
      {
        id: 'selected',
        title: t.selected,
        width: '96px',
        isNumber: true,
        textOf: ({ selected }) => String(selected),
        render: ({ selected }) => formatCount(selected),
      },
      {
        id: 'cameBack',
        title: t.cameBack,
        width: '96px',
        isNumber: true,
        render: ({ receipt }) => (receipt === null ? '–' : formatCount(receipt.counts.came_back)),
      },
      { id: 'actor', title: t.actor, width: '14%', render: ({ actor, policy }) => policy ?? actor },
      {
        id: 'created',
        title: t.created,
        width: '152px',
        render: (row) => <Time at={row.created_at} />,
      },
    ],
    [t],
  );
}
