import { CopyButton } from '../../../components/button/copy-button.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { Message } from '../../../lib/server-shapes.ts';
import { splitStack } from './split-stack.ts';
import styles from './messages.module.css';
import { messagesTexts } from './texts/messages-texts.ts';

/** What the consumer said; frames of libraries are folded. */
export function MessageError({ message }: Readonly<{ message: Message }>) {
  const t = useText(messagesTexts);
  const { error_class: name, error_message: text, error_stack: stack } = message;
  return (
    <section className={styles['panel']} aria-labelledby="error">
      <h2 id="error">{t.error}</h2>
      {name === null ? null : <code className={styles['class']}>{name}</code>}
      <pre className={styles['text']}>{text}</pre>
      {stack == null || stack === '' ? null : (
        <>
          <div className={styles['stack']}>
            {splitStack(stack).map((part, i) =>
              part.kind === 'own' ? (
                <pre key={i}>{part.lines.join('\n')}</pre>
              ) : (
                <details key={i}>
                  <summary>{t.libraryFrames(part.lines.length)}</summary>
                  <pre>{part.lines.join('\n')}</pre>
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
