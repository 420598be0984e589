import { lazy, Suspense } from 'react';
import styles from './code.module.css';

export type CodeTextProps = Readonly<{
  text: string;
  /** Names the region. */
  label: string;
  isJson: boolean;
  /** Bytes that are no UTF-8 are written as `⟨ff⟩`, and marked. */
  hasInvalidBytes: boolean;
  /** Ctrl+F anywhere on the page searches here: the browser's own search sees only lines on screen. */
  isFindable?: boolean;
}>;

const CodeViewer = lazy(async () => ({ default: (await import('./code-viewer.tsx')).CodeViewer }));

/** The editor is large, and loaded when a text is first shown; until then the text is there without it. */
export function CodeText(props: CodeTextProps) {
  return (
    <Suspense
      fallback={
        <pre className={styles['plain']} aria-label={props.label}>
          {props.text.slice(0, firstChars)}
        </pre>
      }
    >
      <CodeViewer {...props} />
    </Suspense>
  );
}

/** More than a screen has. */
const firstChars = 8192;
