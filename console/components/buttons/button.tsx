import { useId, type ReactNode, type Ref } from 'react';
import styles from './button.module.css';

export type ButtonProps = Readonly<{
  children: ReactNode;
  onPress?: (() => void) | undefined;
  kind?: 'plain' | 'primary' | 'danger' | 'quiet';
  /** The key that does the same, shown on the button. */
  hint?: string | undefined;
  /** Why it cannot be used now. It stays visible and can be focused, so that the reason can be read. */
  disabledBecause?: string | null | undefined;
  isBusy?: boolean;
  type?: 'button' | 'submit';
  label?: string | undefined;
  ref?: Ref<HTMLButtonElement>;
}>;

export function Button(props: ButtonProps) {
  const { children, onPress, kind = 'plain', hint, label, disabledBecause = null, isBusy = false } = props;
  const { type = 'button', ref } = props;
  const reasonId = useId();
  const isDisabled = disabledBecause !== null || isBusy;
  return (
    <>
      <button
        ref={ref}
        // oxlint-disable-next-line react/button-has-type -- It is one of two.
        type={type}
        className={styles['button']}
        data-kind={kind}
        aria-label={label}
        aria-disabled={isDisabled || undefined}
        aria-busy={isBusy || undefined}
        aria-describedby={disabledBecause === null ? undefined : reasonId}
        aria-keyshortcuts={hint}
        title={disabledBecause ?? undefined}
        onClick={(event) => {
          if (!isDisabled) return onPress?.();
          event.preventDefault();
        }}
      >
        {children}
        {hint === undefined ? null : (
          <kbd className={styles['hint']} aria-hidden>
            {hint}
          </kbd>
        )}
      </button>
      {disabledBecause === null ? null : (
        <span id={reasonId} hidden>
          {disabledBecause}
        </span>
      )}
    </>
  );
}
