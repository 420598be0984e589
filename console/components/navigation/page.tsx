import { useLocation } from '@tanstack/react-router';
import { useEffect, useRef, type ReactNode } from 'react';
import { useNamedPage, usePageName } from './page-name.tsx';
import styles from './page.module.css';

export type PageProps = Readonly<{
  /** Heading, last part of the breadcrumb, and first part of the document's title. */
  title: string;
  /** Beside the heading: figures, status. */
  facts?: ReactNode;
  /** Buttons at the end of the heading's line. */
  actions?: ReactNode;
  children: ReactNode;
}>;

/**
 * The outline of every page. After a navigation the focus is on the heading, so that a screen reader says where one is,
 * unless the page has put the focus elsewhere: a list puts it back on the row from which it was left.
 */
export function Page({ title, facts, actions, children }: PageProps) {
  const { pathname } = useLocation();
  const { takesFocus } = usePageName();
  const shown = useRef<string | null>(null);
  const page = useRef<HTMLElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  useNamedPage(title);
  useEffect(() => {
    if (shown.current === pathname) return;
    shown.current = pathname;
    const isElsewhere = page.current?.contains(document.activeElement) !== true;
    if (takesFocus() && isElsewhere) heading.current?.focus({ preventScroll: true });
  }, [pathname, takesFocus]);
  return (
    <section ref={page} className={styles['page']}>
      <header className={styles['head']}>
        <h1 ref={heading} tabIndex={-1} className={styles['title']}>
          {title}
        </h1>
        {facts === undefined ? null : <div className={styles['facts']}>{facts}</div>}
        {actions === undefined ? null : <div className={styles['actions']}>{actions}</div>}
      </header>
      {children}
    </section>
  );
}
