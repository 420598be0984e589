import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { ConfirmDialog } from '../../../components/dialog/confirm-dialog.tsx';
import { reasonField, type Confirmation } from '../../../components/dialog/confirmation.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { useText } from '../../../components/text/use-text.ts';
import { parseFilter } from '../../../lib/filter/filter.ts';
import { findProblems } from '../../../lib/filter/qualifiers.ts';
import { keepIds } from '../../../lib/kept-ids.ts';
import { countSelected, type Selection } from '../../../lib/selection/selection.ts';
import { requeueQualifiers, requeueTerms } from './job-qualifiers.ts';
import { listTexts } from './texts/list-texts.ts';
import { useBulk, type BulkAction } from './use-bulk.ts';

type Props = Readonly<{ selection: Selection; total: number | null }>;

/** Requeueing opens a plan; cancelling and discarding ask for a reason, and act on rows that are shown. */
export function JobSelection({ selection, total }: Props) {
  const t = useText(listTexts);
  const { progress, run, stop } = useBulk();
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const ids = selection.kind === 'some' ? [...selection.ids] : [];
  const may = { cancel: useMay('jobs:jobs:cancel'), discard: useMay('jobs:jobs:discard') };
  const onlyChosen = selection.kind === 'some' ? undefined : t.onlyChosen;
  const ask = (action: BulkAction): void =>
    setConfirmation({
      title: action === 'cancel' ? t.cancelTitle(ids.length) : t.discardTitle(ids.length),
      action: action === 'cancel' ? t.cancelTitle(ids.length) : t.discardTitle(ids.length),
      consequence: action === 'cancel' ? t.cancelConsequence : t.discardConsequence,
      isDangerous: true,
      fields: [reasonField(t.reason, t.reasonHint)],
      // The dialog closes at once; the progress stands beside the selection.
      perform: async ({ reason = '' }) => void run(action, ids, reason),
    });
  if (progress !== null)
    return (
      <>
        <span role="status">{t.progress(progress.done, progress.all)}</span>
        <Button onPress={stop}>{t.stop}</Button>
      </>
    );
  return (
    <>
      <RequeueButton selection={selection} total={total} />
      <Button disabledReason={may.cancel.reason ?? onlyChosen} onPress={() => ask('cancel')}>
        {t.cancelSelected(ids.length)}
      </Button>
      <Button kind="danger" disabledReason={may.discard.reason ?? onlyChosen} onPress={() => ask('discard')}>
        {t.discardSelected(ids.length)}
      </Button>
      <ConfirmDialog confirmation={confirmation} onEnd={() => setConfirmation(null)} />
    </>
  );
}

function RequeueButton({ selection, total }: Props) {
  const t = useText(listTexts);
  const navigate = useNavigate();
  const may = useMay('jobs:jobs:requeue');
  const filter = selection.kind === 'allMatching' ? requeueTerms(selection.filter) : '';
  const [problem] = findProblems(parseFilter(filter), requeueQualifiers);
  const isTooFine = selection.kind === 'allMatching' && selection.minus.size > 0;
  const reason =
    may.reason ??
    (isTooFine
      ? t.cannotLeaveOut
      : problem === undefined
        ? undefined
        : t.onlyByCause(problem.term.qualifier ?? problem.term.value));
  const plan = (): void => {
    const search =
      selection.kind === 'some' ? { from: keepIds([...selection.ids]) } : filter === '' ? {} : { q: filter };
    void navigate({ to: '/jobs/requeue', search });
  };
  return (
    <Button kind="primary" keys="r" disabledReason={reason} onPress={plan}>
      {t.requeueSelected(countSelected(selection, total))}
    </Button>
  );
}
