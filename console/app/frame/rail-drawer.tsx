import { useLocation } from '@tanstack/react-router';
import { useEffect, useRef, type RefObject } from 'react';
import { useText } from '../../components/text/use-text.ts';
import { appTexts } from '../texts/app-texts.ts';
import { LeftRail } from './left-rail.tsx';
import styles from './rail-drawer.module.css';

/** The rail of small screens. The browser keeps the focus inside; Escape, a click beside it, or a link closes it. */
export function RailDrawer({ ref }: Readonly<{ ref: RefObject<HTMLDialogElement | null> }>) {
  const t = useText(appTexts);
  const { pathname } = useLocation();
  const shown = useRef(pathname);
  useEffect(() => {
    if (shown.current !== pathname) ref.current?.close();
    shown.current = pathname;
  }, [pathname, ref]);
  return (
    // The browser closes it by Escape, so a click beside it needs no key of its own.
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions
    <dialog
      ref={ref}
      className={styles['drawer']}
      aria-label={t.navigation}
      onClick={(event) => {
        if (event.target === event.currentTarget) event.currentTarget.close();
      }}
    >
      <LeftRail isDrawer />
    </dialog>
  );
}
