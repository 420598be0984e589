import { Lock, LockOpen } from 'lucide-react';
import { useMemo, useState, type ReactNode } from 'react';
import { Button } from '../button/button.tsx';
import { ConfirmDialog } from '../dialog/confirm-dialog.tsx';
import { reasonField } from '../dialog/confirmation.ts';
import { usePageKeys } from '../navigation/use-page-keys.ts';
import { useApi } from '../session/api-context.ts';
import { useMay } from '../session/use-may.ts';
import { useText } from '../text/use-text.ts';
import type { ApiAnswer } from '../../lib/api/api-client.ts';
import styles from './protection.module.css';
import { RevealContext, type Reveal } from './reveal-context.ts';
import { protectionTexts } from './texts/protection-texts.ts';

type Props<Revealed> = Readonly<{
  /** The answer that is shown has masks. */
  isMasked: boolean;
  /** Of `POST …/reveal`. */
  path: string;
  permission: string;
  /** What else the user cannot do while parts are covered. */
  note?: string;
  /** Gets what the server revealed, also as it was sent; null while parts are covered. */
  children: (revealed: Revealed | null, text: string | null) => ReactNode;
}>;

/**
 * An item whose protected parts can be revealed, with a reason. What was revealed is in no cache: it is gone when the
 * item leaves the screen. Give it a key of the item and its version.
 */
export function Revealable<Revealed>({ isMasked, path, permission, note, children }: Props<Revealed>) {
  const t = useText(protectionTexts);
  const api = useApi();
  const may = useMay(permission);
  const [answer, setAnswer] = useState<ApiAnswer<Revealed> | null>(null);
  const [isAsking, setAsking] = useState(false);
  const reveal = useMemo<Reveal>(() => ({ ask: () => setAsking(true), refusal: may.reason }), [may.reason]);
  return (
    <RevealContext value={reveal}>
      {answer !== null ? (
        <Revealed onHide={() => setAnswer(null)} />
      ) : isMasked ? (
        <Covered reveal={reveal} note={note} />
      ) : null}
      {children(answer?.value ?? null, answer?.text ?? null)}
      <ConfirmDialog
        onEnd={() => setAsking(false)}
        confirmation={
          isAsking
            ? {
                title: t.revealTitle,
                action: t.revealAction,
                consequence: t.revealConsequence,
                fields: [reasonField(t.reason, t.reasonHint)],
                perform: async (values) =>
                  setAnswer(await api.send<Revealed>('POST', path, { body: values })),
              }
            : null
        }
      />
    </RevealContext>
  );
}

const key = 'v';

function Covered({ reveal, note = '' }: Readonly<{ reveal: Reveal; note?: string | undefined }>) {
  const t = useText(protectionTexts);
  usePageKeys({ [key]: reveal.refusal === undefined ? reveal.ask : undefined });
  return (
    <section aria-label={t.protection} className={styles['bar']}>
      <Lock size={16} aria-hidden />
      <p>
        {t.covered} {note}
      </p>
      <Button keys={key} disabledReason={reveal.refusal} onPress={reveal.ask}>
        {t.reveal}
      </Button>
    </section>
  );
}

function Revealed({ onHide }: Readonly<{ onHide: () => void }>) {
  const t = useText(protectionTexts);
  usePageKeys({ [key]: onHide });
  return (
    <section aria-label={t.protection} className={styles['bar']} data-open>
      <LockOpen size={16} aria-hidden />
      <p role="status">{t.revealed}</p>
      <Button keys={key} onPress={onHide}>
        {t.hide}
      </Button>
    </section>
  );
}
