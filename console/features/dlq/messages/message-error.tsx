import { CopyButton } from '../../../components/button/copy-button.tsx';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { splitStack } from './split-stack.ts';
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
      {stack == null || stack === '' ? null : (
        <>
          <div className={styles['stack']}>
            {splitStack(stack).map((part, i) =>
              part.kind === 'own' ? (
                <pre key={i}>
                  <MaskedText text={part.lines.join('\n')} />
                </pre>
              ) : (
                <details key={i}>
                  <summary>{t.libraryFrames(part.lines.length)}</summary>
                  <pre>
                    <MaskedText text={part.lines.join('\n')} />
                  </pre>
                </details>
              ),
            )}
          </div>
          <p>
            <CopyButton what={t.stack} text={stack} />
          </p>
        </>
      )}
    </section>
  );
}
