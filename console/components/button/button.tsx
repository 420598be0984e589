import { useId, type ReactNode, type Ref } from 'react';
import styles from './button.module.css';
import { KeyHint } from './key-hint.tsx';

export type ButtonProps = Readonly<{
  onPress: () => void;
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
  const isDisabled = disabledReason !== undefined;
  return (
    <>
      <button
        ref={ref}
        type="button"
        className={styles['button']}
        data-kind={kind}
        aria-disabled={isDisabled || undefined}
        aria-describedby={isDisabled ? reasonId : undefined}
        aria-label={label}
        aria-keyshortcuts={keys}
        aria-expanded={expanded}
        aria-haspopup={popup}
        title={disabledReason ?? label}
        onClick={() => {
          if (!isDisabled) onPress();
        }}
      >
        {children}
        {keys === undefined ? null : <KeyHint keys={keys} />}
      </button>
      {isDisabled ? (
        <span id={reasonId} hidden>
          {disabledReason}
        </span>
      ) : null}
    </>
  );
}
