import { useState } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { ConfirmDialog } from '../../../components/dialog/confirm-dialog.tsx';
import type { Confirmation } from '../../../components/dialog/confirmation.ts';
import { usePageKeys } from '../../../components/navigation/use-page-keys.ts';
import { useText } from '../../../components/text/use-text.ts';
import styles from './detail.module.css';
import { detailTexts } from './texts/detail-texts.ts';
import type { SagaAction } from './use-saga-actions.tsx';

export function SagaActions({ actions }: Readonly<{ actions: readonly SagaAction[] }>) {
  const [confirmation, setConfirmation] = useState<Confirmation | null>(null);
  const retry = actions.find(({ id }) => id === 'retry');
  usePageKeys({
    r:
      retry === undefined || retry.reason !== undefined
        ? undefined
        : () => setConfirmation(retry.confirmation),
  });
  return (
    <>
      {actions.map(({ id, label, kind, keys, reason, confirmation: asks }) => (
        <Button
          key={id}
          kind={kind}
          {...(keys === undefined ? {} : { keys })}
          disabledReason={reason}
          onPress={() => setConfirmation(asks)}
        >
          {label}
        </Button>
      ))}
      <ConfirmDialog confirmation={confirmation} onEnd={() => setConfirmation(null)} />
    </>
  );
}

/** What each button that can be used will do, before anybody presses it. */
export function ActionEffects({ actions }: Readonly<{ actions: readonly SagaAction[] }>) {
  const t = useText(detailTexts);
  const usable = actions.filter(({ reason }) => reason === undefined);
  if (usable.length === 0) return null;
  return (
    <details className={styles['explained']} open={usable.some(({ id }) => id === 'retry')}>
      <summary>{t.whatButtonsDo}</summary>
      <dl className={styles['buttons']}>
        {usable.map(({ id, label, effect }) => (
          <div key={id} className={styles['pair']}>
            <dt>{label.replace('…', '')}</dt>
            <dd>{effect}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
