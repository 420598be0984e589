import { useId, type ReactNode, type Ref } from 'react';
import styles from './button.module.css';
import { KeyHint } from './key-hint.tsx';

export type ButtonProps = Readonly<{
  /** Left out by a button that submits its form. */
  onPress?: () => void;
  type?: 'button' | 'submit';
  /** What it started goes on; until then it does nothing. */
  isBusy?: boolean;
  children: ReactNode;
  kind?: 'plain' | 'primary' | 'danger' | 'quiet';
  /** The key that does the same, such as `r` or `Control+Enter`; shown on the button. */
  keys?: string;
  /** Why the button cannot be used. It stays visible and in the order of focus, so that the reason can be read. */
  disabledReason?: string | undefined;
  /** For a button that shows only an icon. */
  label?: string;
  ref?: Ref<HTMLButtonElement>;
  expanded?: boolean;
  popup?: 'dialog' | 'menu' | 'listbox';
}>;

export function Button({
  onPress,
  type = 'button',
  isBusy = false,
  children,
  kind = 'plain',
  keys,
  disabledReason,
  label,
  ref,
  expanded,
  popup,
}: ButtonProps) {
  const reasonId = useId();
  const isForbidden = disabledReason !== undefined;
  const isDisabled = isForbidden || isBusy;
  return (
    <>
      <button
        ref={ref}
        // oxlint-disable-next-line react/button-has-type -- It is one of two.
        type={type}
        className={styles['button']}
        data-kind={kind}
        data-action
        aria-disabled={isDisabled || undefined}
        aria-busy={isBusy || undefined}
        aria-describedby={isForbidden ? reasonId : undefined}
        aria-label={label}
        aria-keyshortcuts={keys}
        aria-expanded={expanded}
        aria-haspopup={popup}
        title={disabledReason ?? label}
        onClick={(event) => {
          if (isDisabled) event.preventDefault();
          else onPress?.();
        }}
      >
        {children}
        {keys === undefined ? null : <KeyHint keys={keys} />}
      </button>
      {isForbidden ? (
        <span id={reasonId} hidden>
          {disabledReason}
        </span>
      ) : null}
    </>
  );
}
