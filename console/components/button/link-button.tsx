import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import styles from './button.module.css';
import { KeyHint } from './key-hint.tsx';

/** A link that looks like a button: it leads to the page on which something is decided. */
export function LinkButton(
  props: Readonly<{
    to: string;
    search?: Readonly<Record<string, string>>;
    kind?: 'plain' | 'primary';
    keys?: string;
    children: ReactNode;
  }>,
) {
  const { to, search = {}, kind = 'plain', keys, children } = props;
  return (
    <Link to={to} search={search} className={styles['button']} data-kind={kind} aria-keyshortcuts={keys}>
      {children}
      {keys === undefined ? null : <KeyHint keys={keys} />}
    </Link>
  );
}
