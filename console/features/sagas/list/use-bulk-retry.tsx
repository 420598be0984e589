import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { reasonField, type Confirmation } from '../../../components/dialog/confirmation.ts';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useSession } from '../../../components/session/session.tsx';
import { useMay } from '../../../components/session/use-may.ts';
import { useText } from '../../../components/text/use-text.ts';
import { useToast } from '../../../components/toast/toasts.tsx';
import { messageOf } from '../../../lib/api/api-failure.ts';
import { isProduction } from '../../../lib/page-facts.ts';
import type { RetriedSagas, RetryPreview } from '../../../lib/server-shapes.ts';
import { sagasTexts } from '../texts/sagas-texts.ts';
import type { RetryCriteria } from './retry-criteria.ts';
import styles from './list.module.css';
import { listTexts } from './texts/list-texts.ts';

const path = '/api/v1/sagas/retry';
const typedFrom = 1000;

/** Asks the server what a bulk retry would do, shows that, and does it after a reason was given. */
export function useBulkRetry() {
  const t = useText(listTexts);
  const api = useApi();
  const toast = useToast();
  const queries = useQueryClient();
  const { me } = useSession();
  const [isAsking, setAsking] = useState(false);
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const outcomeText = useOutcomeText();
  const may = useMay('saga:sagas:repair');
  const ask = async (criteria: RetryCriteria): Promise<void> => {
    if (may.reason !== undefined) return toast({ text: may.reason, isFailure: true });
    setAsking(true);
    try {
      const body = { ...criteria, preview: true };
      const { value: preview } = await api.send<RetryPreview>('POST', path, { body });
      const count = preview.matched - preview.not_retryable;
      const sagas = preview.has_more ? t.atLeast(t.sagasOf(count)) : t.sagasOf(count);
      if (preview.matched === 0) return toast({ text: t.noneStuck });
      setConfirmation({
        title: t.retryTitle(sagas),
        action: t.retryAction(sagas),
        consequence: <RetryConsequence preview={preview} />,
        fields: [reasonField(t.reason, t.reasonHint)],
        ...(count > typedFrom || isProduction(me.environment) ? { typed: String(count) } : {}),
        async perform({ reason }) {
          const sent = { body: { ...criteria, reason } };
          const { value } = await api.send<RetriedSagas>('POST', path, sent);
          toast({ text: outcomeText(value), isFailure: value.skipped > 0 });
          await queries.invalidateQueries({ queryKey: ['sagas'] });
        },
      });
    } catch (error) {
      toast({ text: messageOf(error), isFailure: true });
    } finally {
      setAsking(false);
    }
  };
  return { ask, isAsking, refusal: may.reason, confirmation, end: () => setConfirmation(null) };
}

function useOutcomeText(): (retried: RetriedSagas) => string {
  const t = useText(listTexts);
  return ({ retried, skipped, skipped_sagas: listed, has_more: isMore }) => {
    const why = [...new Set(listed.map(({ reason }) => reason))].map((reason) =>
      reason === 'failed' ? t.failedRetry : t[reason],
    );
    return [
      t.retried(retried),
      skipped > 0 ? t.skipped(skipped, why.join(', ')) : '',
      isMore ? t.remaining : '',
    ]
      .filter((part) => part !== '')
      .join(' ');
  };
}

function RetryConsequence({ preview }: Readonly<{ preview: RetryPreview }>) {
  const t = useText(listTexts);
  const all = useText(sagasTexts);
  const { sample, not_retryable: skipped } = preview;
  return (
    <>
      <p>{t.retryConsequence}</p>
      {skipped === 0 ? null : <p>{t.notRetryable(skipped)}</p>}
      <p>{t.sample}</p>
      <ul className={styles['sample']}>
        {sample.map(({ saga_id: id, workflow_name: workflow, step, action, reason }) => (
          <li key={id}>
            <code>{id.slice(0, 8)}</code> {workflow} / {action === 'EXECUTE' ? step : all.undoOf(step)}
            {': '}
            <MaskedText text={reason} />
          </li>
        ))}
      </ul>
    </>
  );
}
