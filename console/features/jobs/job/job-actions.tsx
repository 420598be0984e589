import { useState } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { ConfirmDialog } from '../../../components/dialog/confirm-dialog.tsx';
import { reasonField, type Confirmation } from '../../../components/dialog/confirmation.ts';
import { usePageKeys } from '../../../components/navigation/use-page-keys.ts';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { useText } from '../../../components/text/use-text.ts';
import { useToast } from '../../../components/toast/toasts.tsx';
import { messageOf } from '../../../lib/api/api-failure.ts';
import type { JobDetails } from '../../../lib/server-shapes.ts';
import { shownStatus } from '../job-words.ts';
import { jobPath, type JobHandle } from '../use-job.ts';
import { jobTexts } from './texts/job-texts.ts';

type Props = Readonly<{ job: JobDetails; handle: JobHandle }>;

/** What can be done with one job. What its status does not allow stays visible, with the reason. */
export function JobActions({ job, handle }: Props) {
  const t = useText(jobTexts);
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const requeue = useRequeue(job, handle);
  const [cancel, discard] = useDecisions(job, handle);
  const ask = ({ reason, confirmation: asks }: Decision) =>
    reason === undefined ? () => setConfirmation(asks) : undefined;
  usePageKeys({
    r: requeue.reason === undefined ? () => void requeue.run() : undefined,
    c: ask(cancel),
    d: ask(discard),
  });
  return (
    <>
      <Button
        kind="primary"
        keys="r"
        isBusy={requeue.isBusy}
        disabledReason={requeue.reason}
        onPress={() => void requeue.run()}
      >
        {t.requeueTo(job.queue)}
      </Button>
      <Button keys="c" disabledReason={cancel.reason} onPress={() => setConfirmation(cancel.confirmation)}>
        {t.cancel}
      </Button>
      <Button
        kind="danger"
        keys="d"
        disabledReason={discard.reason}
        onPress={() => setConfirmation(discard.confirmation)}
      >
        {t.discard}
      </Button>
      <ConfirmDialog confirmation={confirmation} onEnd={() => setConfirmation(null)} />
    </>
  );
}

function useRequeue(job: JobDetails, handle: JobHandle) {
  const t = useText(jobTexts);
  const api = useApi();
  const toast = useToast();
  const may = useMay('jobs:jobs:requeue');
  const [isBusy, setBusy] = useState(false);
  const reason = may.reason ?? (job.status === 'dead_letter' ? undefined : t.onlyDead(job.status));
  const run = async (): Promise<void> => {
    if (isBusy) return;
    setBusy(true);
    try {
      await api.send('POST', `${jobPath(job.job_id)}/requeue`);
      toast({ text: t.requeued(job.queue) });
    } catch (error) {
      toast({ text: messageOf(error), isFailure: true });
    } finally {
      setBusy(false);
      await handle.readAgain();
    }
  };
  return { reason, isBusy, run };
}

type Decision = Readonly<{ reason: string | undefined; confirmation: Confirmation }>;

/** Each with a reason, each refused by the server if the status has changed. */
function useDecisions(job: JobDetails, handle: JobHandle): readonly [Decision, Decision] {
  const t = useText(jobTexts);
  const api = useApi();
  const mayCancel = useMay('jobs:jobs:cancel');
  const mayDiscard = useMay('jobs:jobs:discard');
  const { status, resolution } = job;
  const isOver = status === 'completed' || status === 'dead_letter';
  const confirmation = (verb: 'cancel' | 'discard', title: string, consequence: string): Confirmation => ({
    title,
    action: title,
    consequence,
    isDangerous: true,
    fields: [reasonField(t.reason, t.reasonHint)],
    async perform(values) {
      try {
        await api.send('POST', `${jobPath(job.job_id)}/${verb}`, { body: values });
      } finally {
        await handle.readAgain();
      }
    },
  });
  return [
    {
      reason: mayCancel.reason ?? (isOver ? t.onlyUnfinished(shownStatus(job)) : undefined),
      confirmation: confirmation(
        'cancel',
        t.cancelTitle,
        status === 'running' ? t.cancelRunning : t.cancelConsequence,
      ),
    },
    {
      reason:
        mayDiscard.reason ??
        (status !== 'dead_letter'
          ? t.onlyDeadDiscard(status)
          : resolution === null
            ? undefined
            : t.alreadyResolved(resolution)),
      confirmation: confirmation('discard', t.discardTitle, t.discardConsequence),
    },
  ];
}
