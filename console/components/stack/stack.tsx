import { CopyButton } from '../button/copy-button.tsx';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { MaskedText } from '../protection/masked-text.tsx';
import { useText } from '../text/use-text.ts';
import { splitStack } from './split-stack.ts';
import styles from './stack.module.css';

/** A stack trace: frames of the user's own code stand out, those of libraries are folded. */
export function Stack({ text }: Readonly<{ text: string }>) {
  const t = useText(kitTexts);
  return (
    <>
      {/* It scrolls, so it can be reached by keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className={styles['stack']} tabIndex={0} role="region" aria-label={t.stack}>
        {splitStack(text).map((part, i) =>
          part.kind === 'own' ? (
            <pre key={i} data-own>
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
        <CopyButton what={t.stack} text={text} />
      </p>
    </>
  );
}
