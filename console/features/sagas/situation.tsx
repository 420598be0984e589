import { Fragment, type ReactNode } from 'react';
import { MaskedText } from '../../components/protection/masked-text.tsx';
import { useText } from '../../components/text/use-text.ts';
import type { Saga } from '../../lib/server-shapes.ts';
import { describeSituation, type Clause } from './describe-situation.ts';
import styles from './saga.module.css';
import { situationTexts } from './situation-texts/situation-texts.ts';
import type { LogRow } from './use-saga.ts';

/** One sentence that says how the saga stands. */
export function Situation({ saga, log }: Readonly<{ saga: Saga; log: readonly LogRow[] }>) {
  const t = useText(situationTexts);
  const clauses = describeSituation(saga, log);
  return (
    <p className={styles['situation']} data-stuck={saga.needs_attention || undefined} role="status">
      {clauses.map((clause, i) => (
        <Fragment key={i}>
          {i === 0 ? '' : t.between}
          <ClauseText clause={clause} />
        </Fragment>
      ))}
      {t.end}
    </p>
  );
}

function ClauseText({ clause }: Readonly<{ clause: Clause }>): ReactNode {
  const t = useText(situationTexts);
  switch (clause.say) {
    case 'progress':
      return t.progress(clause.done, clause.all);
    case 'undoProgress':
      return t.undoProgress(clause.done, clause.all);
    case 'completed':
      return t.completed(clause.all);
    case 'inDoubt':
      return t.inDoubt(clause.steps.join(', '));
    case 'waitsForService':
      return t.waitsForService(clause.service);
    case 'calling':
      return clause.isUndo ? t.callingUndo(clause.step) : t.calling(clause.step);
    case 'polling':
      return clause.isUndo ? t.pollingUndo(clause.step) : t.polling(clause.step);
    case 'failed': {
      const { step, attempts, isUndo, error } = clause;
      return (
        <WithError
          text={isUndo ? t.undoFailedSoFar(step, attempts) : t.failedSoFar(step, attempts)}
          error={error}
        />
      );
    }
    case 'stuck': {
      const { step, attempts, isUndo, error } = clause;
      const uncalled = isUndo ? t.stuckUncalledUndo(step) : t.stuckUncalled(step);
      const failed = isUndo ? t.stuckUndo(step, attempts) : t.stuck(step, attempts);
      return <WithError text={attempts === 0 ? uncalled : failed} error={error} />;
    }
    case 'notStarted':
    case 'undoneAll':
    case 'undoneByHand':
    case 'cancelled':
    case 'cancelledUntouched':
    case 'failedUntouched':
      return t[clause.say];
  }
}

function WithError({ text, error }: Readonly<{ text: string; error: string | null }>) {
  return (
    <>
      {text}
      {error === null || error === '' ? null : (
        <>
          {': '}
          <span className={styles['cause']}>
            <MaskedText text={error} />
          </span>
        </>
      )}
    </>
  );
}
