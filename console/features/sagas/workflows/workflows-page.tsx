import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { Column } from '../../../components/list/column.ts';
import { ListTable } from '../../../components/list/list-table.tsx';
import { useLiveReading } from '../../../components/live/use-live-reading.ts';
import { Page } from '../../../components/navigation/page.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import type { Operations, Workflow } from '../../../lib/server-shapes.ts';
import { shortHash } from '../saga-facts.tsx';
import { sagasTexts } from '../texts/sagas-texts.ts';
import { Services } from './services.tsx';
import { workflowsTexts } from './texts/workflows-texts.ts';
import { UseCount } from './use-count.tsx';
import styles from './workflows.module.css';

type WorkflowList = Operations['listWorkflows']['answer'];

/** The current definitions, and the services that they call. */
export function WorkflowsPage() {
  const t = useText(workflowsTexts);
  const all = useText(sagasTexts);
  const api = useApi();
  const columns = useColumns();
  const query = useQuery({
    queryKey: ['sagas', 'workflows'],
    queryFn: async ({ signal }) => (await api.get<WorkflowList>('/api/v1/workflows', signal)).workflows,
  });
  useLiveReading({ slices: ['sagas'], read: () => query.refetch() });
  return (
    <Page title={all.workflows}>
      <LoadedPanel
        loaded={loadedOf(query, (workflows) => (workflows.length === 0 ? 'not_set_up' : null))}
        onRetry={() => void query.refetch()}
        renderEmpty={() => (
          <EmptyState title={t.noWorkflows}>
            <p>{t.noWorkflowsHint}</p>
            <pre>npx redrive saga register workflow.yaml</pre>
          </EmptyState>
        )}
      >
        {(workflows, isRefreshing) => (
          <ListTable
            caption={t.caption}
            rows={workflows}
            idOf={({ name }) => name}
            nameOf={({ name }) => name}
            linkOf={({ name }) => ({ to: `/sagas/workflows/${encodeURIComponent(name)}` })}
            columns={columns}
            isRefreshing={isRefreshing}
            initialCursor=""
          />
        )}
      </LoadedPanel>
      <Services />
    </Page>
  );
}

function useColumns(): readonly Column<Workflow>[] {
  const t = useText(workflowsTexts);
  const all = useText(sagasTexts);
  return useMemo(
    () => [
      { id: 'name', title: t.name, width: '24%', isPrimary: true, render: ({ name }) => name },
      {
        id: 'steps',
        title: all.steps,
        render: ({ step_names: names }) => <span title={names.join(' → ')}>{names.join(' → ')}</span>,
      },
      {
        id: 'unfinished',
        title: t.unfinished,
        width: '104px',
        isNumber: true,
        render: (workflow) => (
          <UseCount use={workflow} of="unfinished" filter={workflowFilter(workflow.name)} />
        ),
      },
      {
        id: 'stuck',
        title: t.stuck,
        width: '88px',
        isNumber: true,
        render: (workflow) => <UseCount use={workflow} of="stuck" filter={workflowFilter(workflow.name)} />,
      },
      {
        id: 'hash',
        title: t.definition,
        width: '136px',
        render: ({ name, hash }) => (
          <Link to="/sagas/workflows/$name" params={{ name }} search={{ hash }} title={hash}>
            <code className={styles['hash']}>{shortHash(hash)}</code>
          </Link>
        ),
      },
    ],
    [t, all],
  );
}

function workflowFilter(name: string) {
  return { qualifier: 'workflow', value: name, isExcluded: false } as const;
}
