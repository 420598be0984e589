import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Column } from '../../../components/list/column.ts';
import { ListTable } from '../../../components/list/list-table.tsx';
import { Button } from '../../../components/button/button.tsx';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { printFilter, type Term } from '../../../lib/filter/filter.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import type { Operations } from '../../../lib/server-shapes.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { listTexts } from './texts/list-texts.ts';

type DeadList = Operations['listDeadJobs']['answer'];
type Group = DeadList['groups'][number];

const everyMs = 5000;

/** What is dead, by queue and cause: each row is one decision. */
export function DeadView() {
  const t = useText(listTexts);
  const api = useApi();
  const navigate = useNavigate();
  const columns = useGroupColumns();
  const query = useQuery({
    queryKey: ['jobs', 'dead'],
    queryFn: ({ signal }) => api.get<DeadList>('/api/v1/jobs/dead?page_size=1', signal),
    refetchInterval: everyMs,
  });
  return (
    <LoadedPanel
      loaded={loadedOf(query, ({ groups }) => (groups.length === 0 ? 'nothing' : null))}
      onRetry={() => void query.refetch()}
      renderEmpty={() => (
        <EmptyState title={t.noDead}>
          <p>{t.noDeadHint}</p>
        </EmptyState>
      )}
    >
      {({ groups, groups_are_partial: isPartial }, isRefreshing) => (
        <>
          <ListTable
            caption={t.groupsCaption}
            rows={groups}
            idOf={filterOf}
            nameOf={({ queue, error }) => `${queue}: ${error ?? t.noError}`}
            linkOf={(group) => ({
              to: '/jobs/list',
              search: { q: `status:dead_letter resolution:unresolved ${filterOf(group)}` },
            })}
            columns={columns}
            isRefreshing={isRefreshing}
            initialCursor=""
            rowKeys={{
              r: (group) => void navigate({ to: '/jobs/requeue', search: { q: filterOf(group) } }),
            }}
          />
          {isPartial === true ? <p role="note">{t.partial}</p> : null}
        </>
      )}
    </LoadedPanel>
  );
}

/** The same jobs as a filter. Without a fingerprint they are grouped by the beginning of their errors. */
function filterOf({ queue, fingerprint, error }: Group): string {
  const term = (qualifier: string, value: string): Term => ({ qualifier, value, isExcluded: false });
  const cause =
    fingerprint !== null
      ? [term('fingerprint', fingerprint)]
      : error === null || error === ''
        ? []
        : [term('error', error)];
  return printFilter([term('queue', queue), ...cause]);
}

function useGroupColumns(): readonly Column<Group>[] {
  const t = useText(listTexts);
  return useMemo(
    () => [
      {
        id: 'count',
        title: t.count,
        width: '84px',
        isNumber: true,
        textOf: ({ count }) => String(count),
        render: ({ count }) => formatCount(count),
      },
      { id: 'queue', title: t.queue, width: '18%', render: ({ queue }) => queue },
      {
        id: 'error',
        title: t.error,
        isPrimary: true,
        render: ({ error }) => (error === null ? t.noError : <MaskedText text={error} />),
      },
      { id: 'last', title: t.lastAt, width: '164px', render: (row) => <Time at={row.last_at} /> },
      { id: 'requeue', title: t.action, width: '132px', render: (group) => <RequeueGroup group={group} /> },
    ],
    [t],
  );
}

function RequeueGroup({ group }: Readonly<{ group: Group }>) {
  const t = useText(listTexts);
  const may = useMay('jobs:jobs:requeue');
  const navigate = useNavigate();
  return (
    <Button
      disabledReason={may.reason}
      onPress={() => void navigate({ to: '/jobs/requeue', search: { q: filterOf(group) } })}
    >
      {t.requeueGroup}
    </Button>
  );
}
