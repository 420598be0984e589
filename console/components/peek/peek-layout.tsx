import { Suspense, useState, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react';
import { Button } from '../button/button.tsx';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { useText } from '../text/use-text.ts';
import styles from './peek.module.css';

const [minWidth, maxWidth, startWidth, keyStep] = [320, 900, 480, 32];

type Props = Readonly<{
  /** The list. */
  children: ReactNode;
  /** What is previewed; null while nothing is. */
  pane: ReactNode | null;
  label: string;
  onClose: () => void;
}>;

/** A list with a pane beside it whose width can be changed. On small screens the pane covers the list. */
export function PeekLayout({ children, pane, label, onClose }: Props) {
  const t = useText(kitTexts);
  const [width, setWidth] = useState(startWidth);
  const resize = (next: number): void => setWidth(Math.min(maxWidth, Math.max(minWidth, next)));
  const drag = (event: PointerEvent<HTMLElement>): void => {
    if (event.currentTarget.hasPointerCapture(event.pointerId)) resize(window.innerWidth - event.clientX);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowLeft') resize(width + keyStep);
    if (event.key === 'ArrowRight') resize(width - keyStep);
  };
  return (
    <div className={styles['layout']} style={{ '--peek-width': `${width}px` } as React.CSSProperties}>
      <div className={styles['list']}>{children}</div>
      {pane === null ? null : (
        <>
          {/* A separator that can be moved is a control. */}
          {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
          <div
            role="separator"
            aria-label={t.resizePane}
            aria-orientation="vertical"
            aria-valuenow={width}
            aria-valuemin={minWidth}
            aria-valuemax={maxWidth}
            // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
            tabIndex={0}
            className={styles['handle']}
            onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
            onPointerMove={drag}
            onKeyDown={press}
          />
          {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- Only Escape, from within. */}
          <aside
            aria-label={label}
            className={styles['pane']}
            onKeyDown={(event) => {
              if (event.key !== 'Escape' || event.defaultPrevented) return;
              event.stopPropagation();
              onClose();
            }}
          >
            <div className={styles['close']}>
              <Button kind="quiet" keys="Escape" onPress={onClose}>
                {t.close}
              </Button>
            </div>
            {/* Texts of another language may have to be loaded; the list stays, and keeps the focus. */}
            <Suspense>{pane}</Suspense>
          </aside>
        </>
      )}
    </div>
  );
}
