import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState, type FormEvent } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { Page } from '../../../components/navigation/page.tsx';
import { usePageKeys } from '../../../components/navigation/use-page-keys.ts';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { FailedState } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { printFilter } from '../../../lib/filter/filter.ts';
import { readKeptIds } from '../../../lib/kept-ids.ts';
import type { Operations } from '../../../lib/server-shapes.ts';
import { Field } from '../../../components/form/form-parts.tsx';
import { KindFields, PaceFields } from './pace-fields.tsx';
import { emptyPlan, findPlanProblems, kinds, permissionOf, planBody, type PlanForm } from './plan-form.ts';
import { PlanSelection } from './plan-selection.tsx';
import { readRedriveFilter } from './redrive-filter.ts';
import styles from './redrives.module.css';
import { redrivesTexts } from './texts/redrives-texts.ts';

type Created = Operations['planRedrive']['answer'];

/**
 * From a selection to a plan. The selection is a filter in the address (`q`, or the `fingerprint` of a group), or ids
 * that were chosen in a list (`from`). Nothing is sent from here: the plan has its own page.
 */
export function NewRedrivePage() {
  const t = useText(redrivesTexts);
  const { q, fingerprint, from, kind } = useSearch({ strict: false });
  const filterText = q ?? (fingerprint === undefined ? '' : filterOfGroup(fingerprint));
  const [form, setForm] = useState<PlanForm>({
    ...emptyPlan,
    kind: kinds.find((one) => one === kind) ?? 'retry',
  });
  const ids = from === undefined ? undefined : readKeptIds(from);
  const change = (part: Partial<PlanForm>): void => setForm((before) => ({ ...before, ...part }));
  const { submit, isBusy, error, isTried, problems } = usePlan(form, { filterText, ids });
  const reasonOf = useReasonAgainst(form, { filterText, ids });
  usePageKeys({ '$mod+Enter': () => void submit() });
  return (
    <Page title={t.planNew}>
      <form
        className={styles['form']}
        onSubmit={(event: FormEvent) => {
          event.preventDefault();
          void submit();
        }}
      >
        <PlanSelection filterText={filterText} ids={ids} />
        <KindFields form={form} onChange={change} />
        <PaceFields form={form} onChange={change} problems={isTried ? problems : []} />
        <Field
          label={t.reason}
          hint={t.reasonHint}
          isLong
          value={form.reason}
          problem={isTried && problems.includes('reason') ? t.required(t.reason) : undefined}
          onChange={(reason) => change({ reason })}
        />
        {error === null ? null : (
          <FailedState error={error} onRetry={() => void submit()} isRetrying={isBusy} />
        )}
        <div className={styles['buttons']}>
          <Button type="submit" kind="primary" keys="Control+Enter" isBusy={isBusy} disabledReason={reasonOf}>
            {t.makePlan}
          </Button>
          <span className={styles['hint']}>{t.planFirst}</span>
        </div>
      </form>
    </Page>
  );
}

type SelectionOf = Readonly<{ filterText: string; ids: readonly string[] | null | undefined }>;

function filterOfGroup(fingerprint: string): string {
  return printFilter([{ qualifier: 'fingerprint', value: fingerprint, isExcluded: false }]);
}

/** Why the plan cannot be asked for at all; what is wrong in the inputs stands beside them. */
function useReasonAgainst({ kind }: PlanForm, { filterText, ids }: SelectionOf): string | undefined {
  const t = useText(redrivesTexts);
  const mayPlan = useMay('dlq:redrives:plan');
  const mayDecide = useMay(kind === 'retry' ? 'dlq:redrives:plan' : permissionOf[kind]);
  if (ids === null) return t.chosenLost;
  if (ids === undefined && !readRedriveFilter(filterText, 0).isValid) return t.wrongFilter;
  return mayPlan.reason ?? mayDecide.reason;
}

function usePlan(form: PlanForm, { filterText, ids }: SelectionOf) {
  const api = useApi();
  const navigate = useNavigate();
  const [state, setState] = useState<Readonly<{ isBusy: boolean; isTried: boolean; error: Error | null }>>({
    isBusy: false,
    isTried: false,
    error: null,
  });
  const problems = findPlanProblems(form);
  const submit = async (): Promise<void> => {
    const read = readRedriveFilter(filterText, Date.now());
    if (state.isBusy) return;
    if (problems.length > 0 || ids === null || (ids === undefined && !read.isValid)) {
      setState({ isBusy: false, isTried: true, error: null });
      return;
    }
    setState({ isBusy: true, isTried: true, error: null });
    const filter = ids !== undefined ? { ids } : read.isValid ? read.filter : {};
    try {
      const { value } = await api.send<Created>('POST', '/api/v1/dlq/redrives', {
        body: planBody(form, filter),
      });
      await navigate({ to: `/dlq/redrives/${value.id}` });
    } catch (error) {
      setState({
        isBusy: false,
        isTried: true,
        error: error instanceof Error ? error : new Error(String(error)),
      });
    }
  };
  return { ...state, problems, submit };
}
