import { useId, type ReactNode } from 'react';
import { DiffEditor } from '../../../components/code/diff-editor.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { Correction, CorrectionProblem, Original } from './correction.ts';
import styles from './supersede.module.css';
import { supersedeTexts } from './texts/supersede-texts.ts';

type Props = Readonly<{
  original: string;
  needs: Original;
  correction: Correction;
  problems: readonly CorrectionProblem[];
  /** It was tried to send: from then on also what is missing is told. */
  isTried: boolean;
  onChange: (part: Partial<Correction>) => void;
}>;

export function CorrectionFields(props: Props) {
  const { needs, correction, onChange } = props;
  const t = useText(supersedeTexts);
  const problemOf = useProblemText(props);
  return (
    <>
      <Requests {...props} />
      <Line
        label={t.newKey}
        hint={t.newKeyHint}
        problem={problemOf('key')}
        value={correction.key}
        onChange={(key) => onChange({ key })}
      />
      {needs.isInDoubt ? (
        <label className={styles['check']}>
          <input
            type="checkbox"
            checked={correction.isChecked}
            onChange={(event) => onChange({ isChecked: event.target.checked })}
          />
          <span>
            {t.checked} <Problem text={problemOf('checked')} />
          </span>
        </label>
      ) : null}
      <Labelled label={t.reason} hint={t.reasonHint} problem={problemOf('reason')}>
        {(shared) => (
          <textarea
            {...shared}
            className={styles['line']}
            rows={2}
            maxLength={1000}
            value={correction.reason}
            onChange={(event) => onChange({ reason: event.target.value })}
          />
        )}
      </Labelled>
      {needs.isTyped ? (
        <Line
          label={t.typeKey(needs.key)}
          problem={problemOf('typed')}
          value={correction.typed}
          onChange={(typed) => onChange({ typed })}
        />
      ) : null}
    </>
  );
}

/** The original beside the corrected request. */
function Requests(props: Props) {
  const { original, correction, onChange } = props;
  const t = useText(supersedeTexts);
  const problem = useProblemText(props)('request');
  return (
    <div className={styles['field']}>
      <DiffEditor
        label={t.corrected}
        beforeLabel={t.original}
        before={original}
        value={correction.request}
        isJson
        isInvalid={problem !== undefined}
        onChange={(request) => onChange({ request })}
      />
      <span role="status">
        <Problem text={problem} />
        {correction.request === original ? <span className={styles['hint']}>{t.nothingChanged}</span> : null}
      </span>
    </div>
  );
}

type LineProps = Readonly<{
  label: string;
  hint?: string;
  problem: string | undefined;
  value: string;
  onChange: (value: string) => void;
}>;

function Line({ value, onChange, ...labelled }: LineProps) {
  return (
    <Labelled {...labelled}>
      {(shared) => (
        <input
          {...shared}
          className={styles['line']}
          spellCheck={false}
          autoComplete="off"
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      )}
    </Labelled>
  );
}

/** Syntax and keys are told while they are typed, what is missing only once it was tried to send. */
function useProblemText({ problems, isTried, needs }: Props) {
  const t = useText(supersedeTexts);
  return (field: CorrectionProblem['field']): string | undefined => {
    const problem = problems.find((one) => one.field === field);
    switch (problem?.code) {
      case undefined:
        return undefined;
      case 'not_json':
        return t.notJson(problem.line, problem.column);
      case 'not_object':
        return t.notObject;
      case 'duplicate_keys':
        return t.duplicateKeys(problem.keys.join(', '));
      case 'bad_key':
        return t.badKey;
      case 'same_key':
        return t.sameKey;
      case 'missing':
        if (!isTried) return undefined;
        if (field === 'reason') return t.reasonRequired;
        return field === 'checked' ? t.checkFirst : t.typeKey(needs.key);
    }
  };
}

type Shared = Readonly<{
  id: string;
  'aria-describedby': string | undefined;
  'aria-invalid': true | undefined;
}>;

function Labelled(
  props: Readonly<{
    label: string;
    hint?: string;
    problem: string | undefined;
    children: (shared: Shared) => ReactNode;
  }>,
) {
  const { label, hint, problem, children } = props;
  const id = useId();
  const notesId = `${id}-notes`;
  const hasNotes = hint !== undefined || problem !== undefined;
  return (
    <div className={styles['field']}>
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        'aria-describedby': hasNotes ? notesId : undefined,
        'aria-invalid': problem === undefined ? undefined : true,
      })}
      <span id={notesId} className={styles['hint']}>
        <Problem text={problem} /> {problem === undefined ? hint : null}
      </span>
    </div>
  );
}

function Problem({ text }: Readonly<{ text: string | undefined }>) {
  return text === undefined ? null : <strong className={styles['problem']}>{text}</strong>;
}
