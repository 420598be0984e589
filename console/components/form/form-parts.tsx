import { useId, type ReactNode } from 'react';
import styles from './form.module.css';

type FieldProps = Readonly<{
  label: string;
  value: string;
  onChange: (value: string) => void;
  hint?: string;
  /** What is wrong with the value; undefined if nothing is, or if it is too early to say. */
  problem?: string | undefined;
  inputMode?: 'decimal' | 'numeric' | 'text';
  isLong?: boolean;
}>;

/** One input with its label, hint and problem. */
export function Field({
  label,
  value,
  onChange,
  hint,
  problem,
  inputMode = 'text',
  isLong = false,
}: FieldProps) {
  const id = useId();
  const describedBy = [hint === undefined ? '' : `${id}-hint`, problem === undefined ? '' : `${id}-problem`]
    .filter(Boolean)
    .join(' ');
  const shared = {
    id,
    value,
    'aria-describedby': describedBy === '' ? undefined : describedBy,
    'aria-invalid': problem !== undefined,
  };
  return (
    <div className={styles['field']} data-long={isLong || undefined}>
      <label htmlFor={id}>{label}</label>
      {isLong ? (
        <textarea {...shared} rows={2} maxLength={1000} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input
          {...shared}
          inputMode={inputMode}
          autoComplete="off"
          onChange={(event) => onChange(event.target.value)}
        />
      )}
      {hint === undefined ? null : (
        <span id={`${id}-hint`} className={styles['hint']}>
          {hint}
        </span>
      )}
      {problem === undefined ? null : (
        <span id={`${id}-problem`} className={styles['problem']}>
          {problem}
        </span>
      )}
    </div>
  );
}

export function CheckField(
  props: Readonly<{ label: string; hint?: string; checked: boolean; onChange: (checked: boolean) => void }>,
) {
  return (
    <label className={styles['check']}>
      <input
        type="checkbox"
        checked={props.checked}
        onChange={(event) => props.onChange(event.target.checked)}
      />
      <span>
        {props.label}
        {props.hint === undefined ? null : <span className={styles['hint']}> {props.hint}</span>}
      </span>
    </label>
  );
}

/** One step of a form. */
export function FormPart({ legend, children }: Readonly<{ legend: string; children: ReactNode }>) {
  return (
    <fieldset className={styles['part']}>
      <legend>{legend}</legend>
      {children}
    </fieldset>
  );
}
