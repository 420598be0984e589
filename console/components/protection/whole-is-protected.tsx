import { Button } from '../button/button.tsx';
import { useText } from '../text/use-text.ts';
import styles from './protection.module.css';
import { useReveal } from './reveal-context.ts';
import { protectionTexts } from './texts/protection-texts.ts';

/** In place of a part of which nothing can be shown. */
export function WholeIsProtected() {
  const t = useText(protectionTexts);
  const reveal = useReveal();
  return (
    <div className={styles['whole']}>
      <p>{t.wholeIsProtected}</p>
      {reveal === null ? null : (
        <Button disabledReason={reveal.refusal} onPress={reveal.ask}>
          {t.reveal}
        </Button>
      )}
    </div>
  );
}
