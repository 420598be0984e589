import { useNavigate, useSearch } from '@tanstack/react-router';
import { useId, useState, type SubmitEvent } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { Page } from '../../../components/navigation/page.tsx';
import { useText } from '../../../components/text/use-text.ts';
import styles from './ledger.module.css';
import { Proof } from './proof.tsx';
import { ledgerTexts } from './texts/ledger-texts.ts';

const keyPattern = /^[!-~]{8,64}$/;

/** The proof of one effect, by its idempotency key. */
export function LedgerPage() {
  const t = useText(ledgerTexts);
  const { key = '' } = useSearch({ strict: false });
  return (
    <Page title={t.title}>
      <p>{t.intro}</p>
      <KeyForm key={key} shown={key} />
      {keyPattern.test(key) ? <Proof key={key} ledgerKey={key} /> : null}
    </Page>
  );
}

function KeyForm({ shown }: Readonly<{ shown: string }>) {
  const t = useText(ledgerTexts);
  const navigate = useNavigate();
  const hintId = useId();
  const [typed, setTyped] = useState(shown);
  const [isTried, setTried] = useState(shown !== '');
  const isBad = isTried && !keyPattern.test(typed.trim());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setTried(true);
    if (keyPattern.test(typed.trim())) void navigate({ to: '/outbox/ledger', search: { key: typed.trim() } });
  };
  return (
    <form className={styles['form']} onSubmit={submit} role="search">
      <label className={styles['field']}>
        {t.key}
        <input
          value={typed}
          spellCheck={false}
          autoComplete="off"
          aria-invalid={isBad || undefined}
          aria-describedby={hintId}
          onChange={(event) => setTyped(event.target.value)}
        />
      </label>
      <Button type="submit" kind="primary">
        {t.find}
      </Button>
      <p id={hintId} className={styles['hint']} role={isBad ? 'alert' : undefined}>
        {isBad ? t.badKey : t.keyHint}
      </p>
    </form>
  );
}
