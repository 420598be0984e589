import { useQuery } from '@tanstack/react-query';
import { Link, useParams, useSearch } from '@tanstack/react-router';
import { CopyButton } from '../../../components/button/copy-button.tsx';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { Page } from '../../../components/navigation/page.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { printFilter } from '../../../lib/filter/filter.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import type { DefinedWorkflow, WorkflowDefinition } from '../../../lib/server-shapes.ts';
import { shortHash } from '../saga-facts.tsx';
import { DefinitionSteps } from './definition-steps.tsx';
import { workflowsTexts } from './texts/workflows-texts.ts';
import { UseCount } from './use-count.tsx';
import styles from './workflows.module.css';

/** One workflow: all its definitions, which sagas keep each, and the steps of one of them. */
export function WorkflowPage() {
  const t = useText(workflowsTexts);
  const { name = '' } = useParams({ strict: false });
  const { hash: asked = '' } = useSearch({ strict: false });
  const api = useApi();
  const query = useQuery({
    queryKey: ['sagas', 'workflows', name],
    queryFn: ({ signal }) =>
      api.get<DefinedWorkflow>(`/api/v1/workflows/${encodeURIComponent(name)}`, signal),
  });
  const filter = printFilter([{ qualifier: 'workflow', value: name, isExcluded: false }]);
  return (
    <Page
      title={name}
      actions={
        <LinkButton to="/sagas" search={{ q: filter }}>
          {t.sagasOfIt}
        </LinkButton>
      }
    >
      <LoadedPanel
        loaded={loadedOf(query, () => null)}
        onRetry={() => void query.refetch()}
        renderEmpty={() => null}
      >
        {(workflow) => <Definitions workflow={workflow} asked={asked} />}
      </LoadedPanel>
    </Page>
  );
}

function Definitions({ workflow, asked }: Readonly<{ workflow: DefinedWorkflow; asked: string }>) {
  const t = useText(workflowsTexts);
  const { definitions } = workflow;
  const shown = definitions.find(({ hash, is_current: isCurrent }) =>
    asked === '' ? isCurrent : hash === asked,
  );
  return (
    <>
      <section aria-labelledby="definitions" className={styles['section']}>
        <h2 id="definitions">{t.definitions}</h2>
        <div className={styles['tableBox']}>
          <table className={styles['table']}>
            <caption className="visually-hidden">{t.definitionsCaption}</caption>
            <thead>
              <tr>
                {[t.definition, t.registered, t.unfinished, t.stuck].map((title) => (
                  <th key={title} scope="col">
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {definitions.map((definition) => (
                <DefinitionRow
                  key={definition.hash}
                  name={workflow.name}
                  definition={definition}
                  isShown={definition === shown}
                />
              ))}
            </tbody>
          </table>
        </div>
        {workflow.has_more_definitions ? <p>{t.moreDefinitions}</p> : null}
      </section>
      {shown === undefined ? <p role="status">{t.unknownHash}</p> : <DefinitionSteps definition={shown} />}
    </>
  );
}

function DefinitionRow(props: Readonly<{ name: string; definition: WorkflowDefinition; isShown: boolean }>) {
  const { name, definition, isShown } = props;
  const t = useText(workflowsTexts);
  const { hash, is_current: isCurrent, registered_at: registered } = definition;
  const filter = { qualifier: 'definition', value: hash, isExcluded: false } as const;
  return (
    <tr data-selected={isShown || undefined}>
      <td>
        <Link
          to="/sagas/workflows/$name"
          params={{ name }}
          search={{ hash }}
          replace
          title={hash}
          aria-current={isShown ? 'true' : undefined}
        >
          <code className={styles['hash']}>{shortHash(hash)}</code>
        </Link>{' '}
        <CopyButton what={t.definition} text={hash} /> {isCurrent ? t.current : null}
      </td>
      <td>
        <Time at={registered} />
      </td>
      <td>
        <UseCount use={definition} of="unfinished" filter={filter} />
      </td>
      <td>
        <UseCount use={definition} of="stuck" filter={filter} />
      </td>
    </tr>
  );
}
