import { useState } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { ConfirmDialog } from '../../../components/dialog/confirm-dialog.tsx';
import { reasonField, type Confirmation } from '../../../components/dialog/confirmation.ts';
import { usePageKeys } from '../../../components/navigation/use-page-keys.ts';
import { useSession } from '../../../components/session/session.tsx';
import { useMay } from '../../../components/session/use-may.ts';
import { useText } from '../../../components/text/use-text.ts';
import { useToast } from '../../../components/toast/toasts.tsx';
import { messageOf } from '../../../lib/api/api-failure.ts';
import type { Redrive } from '../../../lib/server-shapes.ts';
import { hasEnded } from './redrive-numbers.ts';
import { redrivesTexts } from './texts/redrives-texts.ts';
import type { RedriveHandle } from './use-redrive.ts';

type Props = Readonly<{ redrive: Redrive; handle: RedriveHandle }>;

/** What can be done in this state. Start, pause and cancel act at once in the server. */
export function RedriveActions({ redrive, handle }: Props) {
  const { state, counts } = redrive;
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const start = useStart(redrive, handle);
  const cancel = useCancel(redrive, handle);
  const toggle = usePauseOrResume(redrive, handle);
  const ask = (action: Action) => (): void => {
    if (action.reason === undefined) action.run(setConfirmation);
  };
  const approve = useApprove(redrive, handle);
  const isNew = state === 'planned' || state === 'awaiting_approval' || state === 'planning';
  usePageKeys({
    '$mod+Enter': isNew ? ask(start) : undefined,
    p: state === 'running' || state === 'paused' ? ask(toggle) : undefined,
  });
  if (hasEnded(redrive)) return null;
  return (
    <>
      <Button disabledReason={cancel.reason} onPress={ask(cancel)} kind="danger">
        {cancel.label}
      </Button>
      {state === 'running' || state === 'paused' ? (
        <Button keys="p" disabledReason={toggle.reason} onPress={ask(toggle)}>
          {toggle.label}
        </Button>
      ) : null}
      {state === 'awaiting_approval' && redrive.approval === null ? (
        <Button disabledReason={approve.reason} onPress={ask(approve)}>
          {approve.label}
        </Button>
      ) : null}
      {isNew && counts.selected > 0 ? (
        <Button kind="primary" keys="Control+Enter" disabledReason={start.reason} onPress={ask(start)}>
          {start.label}
        </Button>
      ) : null}
      <ConfirmDialog confirmation={confirmation} onEnd={() => setConfirmation(null)} />
    </>
  );
}

type Action = Readonly<{
  label: string;
  /** Why it cannot be done. */
  reason: string | undefined;
  run: (ask: (confirmation: Confirmation) => void) => void;
}>;

function useStart({ kind, counts, targets, state, approval }: Redrive, handle: RedriveHandle): Action {
  const t = useText(redrivesTexts);
  const may = useMay('dlq:redrives:start');
  const { selected } = counts;
  const label = kind === 'retry' ? t.start(selected) : t.startDecision(t[kind], selected);
  const topics = targets.map(({ topic }) => topic).join(', ');
  return {
    label,
    reason:
      may.reason ??
      (state === 'planning'
        ? t.planning
        : state === 'awaiting_approval' && approval === null
          ? t.needsApproval
          : undefined),
    run: (ask) =>
      ask({
        title: kind === 'retry' ? t.startTitle(selected) : label,
        consequence:
          kind === 'retry' ? t.startConsequence(selected, topics) : t.startDecisionConsequence(selected),
        action: label,
        isDangerous: kind === 'delete',
        perform: async () => handle.command('start'),
      }),
  };
}

/** By a second person: the server refuses whoever made or changed the plan. */
function useApprove({ counts, actor, approval }: Redrive, handle: RedriveHandle): Action {
  const t = useText(redrivesTexts);
  const may = useMay('dlq:redrives:approve');
  const { me } = useSession();
  return {
    label: t.approve,
    reason: may.reason ?? (approval === null && me.subject === actor ? t.notYourOwn : undefined),
    run: (ask) =>
      ask({
        title: t.approveTitle(counts.selected),
        consequence: t.approveConsequence,
        action: t.approveAction,
        fields: [reasonField(t.reason, t.reasonHint)],
        perform: async ({ reason }) => handle.command('approve', reason),
      }),
  };
}

export function useCancel({ state, counts }: Redrive, handle: RedriveHandle): Action {
  const t = useText(redrivesTexts);
  const may = useMay('dlq:redrives:cancel');
  const isNew = state === 'planned' || state === 'awaiting_approval' || state === 'planning';
  return {
    label: isNew ? t.cancelPlan : state === 'stopped' ? t.cancelRest : t.cancel,
    reason: may.reason,
    run: (ask) =>
      ask({
        title: t.cancelTitle,
        consequence: `${t.cancelConsequence(counts.waiting)} ${t.stopsAfter(counts.in_flight)}`,
        action: t.cancelAction,
        isDangerous: !isNew,
        fields: isNew ? [] : [reasonField(t.reason, t.reasonHint, false)],
        perform: async ({ reason }) => handle.command('cancel', reason),
      }),
  };
}

/** No question asked: it is undone by the same key. */
function usePauseOrResume({ state }: Redrive, handle: RedriveHandle): Action {
  const t = useText(redrivesTexts);
  const toast = useToast();
  const isRunning = state === 'running';
  const may = useMay(isRunning ? 'dlq:redrives:pause' : 'dlq:redrives:start');
  return {
    label: isRunning ? t.pause : t.resume,
    reason: may.reason,
    run: () =>
      void handle
        .command(isRunning ? 'pause' : 'resume')
        .catch((error: unknown) => toast({ text: messageOf(error), isFailure: true })),
  };
}
