import styles from './button.module.css';

const signs: Readonly<Record<string, string>> = {
  Control: 'Ctrl',
  Enter: '⏎',
  Escape: 'Esc',
  ArrowUp: '↑',
  ArrowDown: '↓',
};

/** A key as it is printed on a keyboard. The accessible form is `aria-keyshortcuts` of what it is for. */
export function KeyHint({ keys }: Readonly<{ keys: string }>) {
  return (
    <kbd className={styles['keys']} aria-hidden>
      {printKeys(keys)}
    </kbd>
  );
}

/** `Control+Enter` is `Ctrl ⏎`; a sequence such as `g i` stays as it is. */
export function printKeys(keys: string): string {
  return keys
    .split(' ')
    .map((chord) =>
      chord
        .split(/(?<=.)\+/)
        .map((key) => signs[key] ?? key)
        .join(' '),
    )
    .join(' ');
}
