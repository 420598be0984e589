import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { Button } from './button.tsx';
import styles from './button.module.css';
import { KeyHint } from './key-hint.tsx';

/** A link that looks like a button: it leads to the page on which something is decided. */
export function LinkButton(
  props: Readonly<{
    to: string;
    search?: Readonly<Record<string, string>>;
    kind?: 'plain' | 'primary';
    keys?: string;
    /** What it leads to, if the label does not say it. */
    hint?: string;
    /** Why it cannot be used; it stays visible then. */
    disabledReason?: string | undefined;
    children: ReactNode;
  }>,
) {
  const { to, search = {}, kind = 'plain', keys, hint, disabledReason, children } = props;
  if (disabledReason !== undefined)
    return (
      <Button kind={kind} disabledReason={disabledReason} {...(keys === undefined ? {} : { keys })}>
        {children}
      </Button>
    );
  return (
    <Link
      to={to}
      search={search}
      className={styles['button']}
      data-kind={kind}
      data-action
      aria-keyshortcuts={keys}
      title={hint}
    >
      {children}
      {keys === undefined ? null : <KeyHint keys={keys} />}
    </Link>
  );
}
