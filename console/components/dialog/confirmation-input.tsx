import { useId } from 'react';
import type { ConfirmationField } from './confirmation.ts';
import styles from './dialog.module.css';

export function ConfirmationInput(
  props: Readonly<{ field: ConfirmationField; value: string; onChange: (value: string) => void }>,
) {
  const { field, value, onChange } = props;
  const hintId = useId();
  const isDisabled = field.disabledReason !== undefined;
  const hintText = field.disabledReason ?? field.hint;
  const shared = {
    'aria-describedby': hintText === undefined ? undefined : hintId,
    'aria-required': field.isRequired === true ? true : undefined,
    maxLength: field.maxLength,
    value,
  };
  const hint =
    hintText === undefined ? null : (
      <span id={hintId} className={styles['hint']}>
        {hintText}
      </span>
    );
  if (field.kind === 'check')
    return (
      <label className={styles['check']}>
        <input
          type="checkbox"
          checked={value === 'true'}
          aria-disabled={isDisabled || undefined}
          onChange={(event) => {
            if (!isDisabled) onChange(event.target.checked ? 'true' : '');
          }}
        />
        <span>
          {field.label} {hint}
        </span>
      </label>
    );
  return (
    <div className={styles['field']}>
      <label>
        {field.label}
        {field.kind === 'line' ? (
          <input {...shared} spellCheck={false} onChange={(event) => onChange(event.target.value)} />
        ) : (
          <textarea {...shared} rows={3} onChange={(event) => onChange(event.target.value)} />
        )}
      </label>
      {hint}
    </div>
  );
}
