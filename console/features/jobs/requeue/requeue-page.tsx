import { useSearch } from '@tanstack/react-router';
import { useContext, useMemo } from 'react';
import { Page } from '../../../components/navigation/page.tsx';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { FormPart } from '../../../components/form/form-parts.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { ClockContext } from '../../../components/time/clock.ts';
import { parseFilter, printTerm } from '../../../lib/filter/filter.ts';
import { toQuery } from '../../../lib/filter/qualifiers.ts';
import { readKeptIds } from '../../../lib/kept-ids.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import { requeueQualifiers } from '../list/job-qualifiers.ts';
import { RequeueForm } from './requeue-form.tsx';
import { RequeuePreviewPanel } from './requeue-preview.tsx';
import styles from './requeue.module.css';
import { requeueTexts } from './texts/requeue-texts.ts';
import { usePreview, useRequeue, type DeadSelection } from './use-requeue.ts';

/**
 * From a selection to a requeue: a filter in the address (`q`), or ids that were chosen in a list (`from`). The preview
 * shows what would happen; nothing happens before a reason is given.
 */
export function RequeuePage() {
  const t = useText(requeueTexts);
  const { q = '', from } = useSearch({ strict: false });
  const clock = useContext(ClockContext);
  const ids = useMemo(() => (from === undefined ? undefined : readKeptIds(from)), [from]);
  const selection = useMemo(() => selectionOf(q, ids, clock.now()), [q, ids, clock]);
  const query = usePreview(selection);
  const { run, start, stop } = useRequeue();
  return (
    <Page title={t.requeue}>
      <div className={styles['plan']}>
        <FormPart legend={t.selects}>
          {ids === undefined ? (
            <Terms filter={q} />
          ) : (
            <p>{ids === null ? t.chosenLost : t.chosen(ids.length)}</p>
          )}
          {selection === null ? <p role="alert">{ids === null ? t.chosenLost : t.nothingSelected}</p> : null}
        </FormPart>
        {selection === null ? (
          <p>
            <LinkButton to="/jobs/list">{t.toList}</LinkButton>
          </p>
        ) : (
          <LoadedPanel
            loaded={loadedOf(query, ({ matched }) => (matched === 0 && run === null ? 'nothing' : null))}
            onRetry={() => void query.refetch()}
            renderEmpty={() => (
              <EmptyState title={t.noMatch}>
                <p>{t.noMatchHint}</p>
              </EmptyState>
            )}
            skeletonRows={3}
          >
            {(preview) => (
              <>
                {run === null ? <RequeuePreviewPanel preview={preview} /> : null}
                <RequeueForm
                  preview={preview}
                  run={run}
                  onStart={(most, reason) => void start(selection, most, reason)}
                  onStop={stop}
                />
              </>
            )}
          </LoadedPanel>
        )}
      </div>
    </Page>
  );
}

/** Null if nothing, or what cannot be asked for, is selected. */
function selectionOf(
  q: string,
  ids: readonly string[] | null | undefined,
  nowMs: number,
): DeadSelection | null {
  if (ids === null) return null;
  if (ids !== undefined) return ids.length === 0 ? null : { job_ids: ids };
  const query = toQuery(parseFilter(q), requeueQualifiers, nowMs);
  return query.isValid && query.parameters.length > 0 ? Object.fromEntries(query.parameters) : null;
}

function Terms({ filter }: Readonly<{ filter: string }>) {
  const t = useText(requeueTexts);
  return (
    <>
      <p className={styles['hint']}>{t.selectsHint}</p>
      <ul className={styles['terms']}>
        {parseFilter(filter).map((term, i) => (
          <li key={i}>
            <code>{printTerm(term)}</code>
          </li>
        ))}
      </ul>
    </>
  );
}
