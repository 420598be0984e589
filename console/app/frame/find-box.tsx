import { Search } from 'lucide-react';
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { KeyHint } from '../../components/button/key-hint.tsx';
import { usePageKeys } from '../../components/navigation/use-page-keys.ts';
import { useText } from '../../components/text/use-text.ts';
import { appTexts } from '../texts/app-texts.ts';
import styles from './find-box.module.css';

const load = async () => ({ default: (await import('../palette/palette.tsx')).Palette });
const Palette = lazy(load);

/** The way to everything by one key. What opens is loaded when it is first used. */
export function FindBox() {
  const t = useText(appTexts);
  const [opener, setOpener] = useState<HTMLElement | 'none' | null>(null);
  const pressed = useRef<HTMLElement | null>(null);
  const open = (): void =>
    setOpener(document.activeElement instanceof HTMLElement ? document.activeElement : 'none');
  usePageKeys({ '$mod+k': open });
  useEffect(() => {
    const element = pressed.current;
    if (opener !== null || element === null) return undefined;
    pressed.current = null;
    // After the focus has come back: what the button opens takes it from there.
    const frame = requestAnimationFrame(() => {
      if (element.isConnected) element.click();
    });
    return () => cancelAnimationFrame(frame);
  }, [opener]);
  return (
    <>
      <button
        type="button"
        className={styles['box']}
        aria-haspopup="dialog"
        aria-keyshortcuts="Control+K"
        onFocus={() => void load()}
        onPointerEnter={() => void load()}
        onClick={open}
      >
        <Search size={14} aria-hidden />
        <span className={styles['text']}>{t.find}</span>
        <KeyHint keys="Control+K" />
      </button>
      {opener === null ? null : (
        <Suspense>
          <Palette
            opener={opener === 'none' ? null : opener}
            onEnd={(press) => {
              pressed.current = press;
              setOpener(null);
            }}
          />
        </Suspense>
      )}
    </>
  );
}
