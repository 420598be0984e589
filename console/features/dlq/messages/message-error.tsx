import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { Stack } from '../../../components/stack/stack.tsx';
import { useText } from '../../../components/text/use-text.ts';
import styles from './messages.module.css';
import { messagesTexts } from './texts/messages-texts.ts';
import type { RevealedProps } from './use-payload.ts';

/** What the consumer said; frames of libraries are folded. */
export function MessageError({ message, revealed = null }: RevealedProps) {
  const t = useText(messagesTexts);
  const { error_class: name } = message;
  const { error_message: text, error_stack: stack } = revealed ?? message;
  return (
    <section className={styles['panel']} aria-labelledby="error">
      <h2 id="error">{t.error}</h2>
      {name === null ? null : (
        <code className={styles['class']}>
          <MaskedText text={name} />
        </code>
      )}
      <pre className={styles['text']}>
        <MaskedText text={text} />
      </pre>
      {stack == null || stack === '' ? null : <Stack text={stack} />}
    </section>
  );
}
