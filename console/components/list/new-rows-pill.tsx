import { KeyHint } from '../button/key-hint.tsx';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { useText } from '../text/use-text.ts';
import styles from './list.module.css';

/** New rows wait behind it, so that nothing moves under the pointer. */
export function NewRowsPill({ count, onLoad }: Readonly<{ count: number; onLoad: () => void }>) {
  const t = useText(kitTexts);
  return (
    <span role="status">
      {count === 0 ? null : (
        <button type="button" className={styles['pill']} onClick={onLoad} aria-keyshortcuts="Shift+.">
          <span aria-hidden>▲ </span>
          {t.newRows(count)}
          <KeyHint keys="Shift+." />
        </button>
      )}
    </span>
  );
}
