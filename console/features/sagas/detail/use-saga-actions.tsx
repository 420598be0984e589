import type { ReactNode } from 'react';
import {
  reasonField,
  type Confirmation,
  type ConfirmationField,
} from '../../../components/dialog/confirmation.ts';
import { useApi } from '../../../components/session/api-context.ts';
import { useSession } from '../../../components/session/session.tsx';
import { useMay } from '../../../components/session/use-may.ts';
import { useText } from '../../../components/text/use-text.ts';
import { useToast } from '../../../components/toast/toasts.tsx';
import { ApiFailure } from '../../../lib/api/api-failure.ts';
import { readTokens } from '../../../lib/exact-json/tokens.ts';
import { isProduction } from '../../../lib/page-facts.ts';
import type { Saga } from '../../../lib/server-shapes.ts';
import { sagasTexts } from '../texts/sagas-texts.ts';
import { isEnd, sagaPath, type SagaHandle } from '../use-saga.ts';
import { detailTexts } from './texts/detail-texts.ts';

/** A button, what it does, and what is asked before it does it. */
export type SagaAction = Readonly<{
  id: string;
  label: string;
  keys?: string;
  kind: 'primary' | 'plain' | 'danger';
  /** Why it cannot be used; undefined if it can. */
  reason: string | undefined;
  effect: string;
  confirmation: Confirmation;
}>;

type Done = Readonly<{ status: string; message: string }>;
type Values = Readonly<Record<string, string>>;

type Draft = Omit<SagaAction, 'confirmation'> &
  Readonly<{
    /** Below the saga's path. */
    to: string;
    isFinal: boolean;
    fields?: readonly ConfirmationField[];
    /** The body besides the reason, as JSON. */
    bodyOf?: (values: Values) => string;
  }>;

/** What can be done with a saga. What its state does not allow stays visible, with the reason. */
export function useSagaActions(saga: Saga, handle: SagaHandle): readonly SagaAction[] {
  const confirm = useConfirm(saga, handle);
  const drafts = [...useStepDrafts(saga), ...useAbortDrafts(saga)];
  return drafts.map((draft) => ({ ...draft, confirmation: confirm(draft) }));
}

function useConfirm(saga: Saga, handle: SagaHandle): (draft: Draft) => Confirmation {
  const t = useText(detailTexts);
  const api = useApi();
  const toast = useToast();
  const { me } = useSession();
  const perform = async ({ to, bodyOf }: Draft, values: Values): Promise<void> => {
    const reason = `"reason":${JSON.stringify(values['reason'] ?? '')}`;
    const bodyText = `{${[reason, bodyOf?.(values) ?? ''].filter((part) => part !== '').join(',')}}`;
    try {
      const { value } = await api.send<Done>('POST', `${sagaPath(saga.saga_id)}/${to}`, { bodyText });
      toast({ text: t.performed(value.message) });
    } catch (error) {
      if (!(error instanceof ApiFailure) || error.status !== 409) throw error;
      const status = await handle.statusNow();
      throw status === null ? error : new Error(t.conflict(`${error.message}.`, status), { cause: error });
    } finally {
      await handle.readAgain();
    }
  };
  return (draft) => {
    const title = draft.label.replace('…', '');
    const consequence: ReactNode = (
      <>
        <p>{draft.effect}</p>
        {draft.isFinal ? <p>{t.cannotUndo}</p> : null}
      </>
    );
    return {
      title,
      action: title,
      consequence,
      isDangerous: draft.isFinal,
      fields: [...(draft.fields ?? []), reasonField(t.reason, t.reasonHint)],
      ...(draft.isFinal && isProduction(me.environment) ? { typed: saga.workflow_name } : {}),
      perform: (values) => perform(draft, values),
    };
  };
}

function useStepDrafts(saga: Saga): readonly Draft[] {
  const t = useText(detailTexts);
  const all = useText(sagasTexts);
  const may = useMay('saga:sagas:repair');
  const { stuck } = saga;
  const isUndo = stuck?.action === 'COMPENSATE';
  const step = stuck?.step ?? '?';
  const what = isUndo ? all.undoOf(step) : step;
  const reason =
    may.reason ?? (stuck === undefined ? t.nothingStuck : stuck.step === null ? t.noStep : undefined);
  const to = (verb: string): string => `steps/${encodeURIComponent(step)}/${verb}`;
  const draft = (id: string, label: string, effect: string, more: Partial<Draft> = {}): Draft => ({
    id,
    label,
    effect,
    kind: 'plain',
    reason,
    to: to('resolve'),
    isFinal: true,
    ...more,
  });
  const resolutions = isUndo
    ? [draft('undone', t.resolveUndo, t.resolveUndoEffect(step))]
    : [
        draft('happened', t.resolveDone, t.resolveDoneEffect(step), {
          fields: [{ name: 'output', label: t.output, hint: t.outputHint, kind: 'lines' }],
          bodyOf: ({ output = '' }) => `"outcome":"done"${outputMember(output, t.notJson)}`,
        }),
        draft('not-happened', t.resolveNotDone, t.resolveNotDoneEffect(step), {
          reason: reason ?? (isPivotPassed(saga) ? t.pivotPassed : undefined),
          bodyOf: () => '"outcome":"not_done"',
        }),
      ];
  return [
    draft('retry', stuck === undefined ? t.retryStep : t.retry(what), t.retryEffect(what), {
      kind: stuck === undefined ? 'plain' : 'primary',
      keys: 'r',
      to: to('retry'),
      isFinal: false,
    }),
    draft(
      'skip',
      stuck === undefined ? t.skipStep : t.skip(what),
      isUndo ? t.skipUndoEffect(step) : t.skipEffect(step),
      { to: to('skip') },
    ),
    ...resolutions,
  ];
}

/** Numbers are sent with the digits that were typed. */
function outputMember(output: string, problem: string): string {
  if (output.trim() === '') return '';
  if (!readTokens(output).isValid) throw new Error(problem);
  return `,"output":${output}`;
}

function isPivotPassed({ steps }: Saga): boolean {
  return (steps ?? []).some(({ pivot, state }) => pivot && (state === 'done' || state === 'skipped'));
}

function useAbortDrafts(saga: Saga): readonly Draft[] {
  const t = useText(detailTexts);
  const [cancel, compensate] = [useMay('saga:sagas:cancel'), useMay('saga:sagas:compensate')];
  const { status } = saga;
  const why = isEnd(status)
    ? t.hasEnded(status)
    : status === 'COMPENSATING'
      ? t.isUndoing
      : saga.pivot_opened
        ? t.pivotOpened
        : saga.abort === undefined
          ? undefined
          : t.wasAsked;
  const draft = { kind: 'danger', isFinal: true } as const;
  return [
    {
      ...draft,
      id: 'cancel',
      label: t.cancel,
      effect: t.cancelEffect,
      to: 'cancel',
      reason: cancel.reason ?? why,
    },
    {
      ...draft,
      id: 'compensate',
      label: t.compensate,
      effect: t.compensateEffect,
      to: 'compensate',
      reason: compensate.reason ?? why,
    },
  ];
}
