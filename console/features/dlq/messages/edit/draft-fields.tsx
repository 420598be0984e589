import { Button } from '../../../../components/button/button.tsx';
import { useText } from '../../../../components/text/use-text.ts';
import { Field } from '../../../../components/form/form-parts.tsx';
import { editableOf, type Draft, type DraftHeader, type Version } from './draft.ts';
import styles from './edit.module.css';
import { editTexts } from './texts/edit-texts.ts';

type Props = Readonly<{
  version: Version;
  draft: Draft;
  onChange: (part: Partial<Draft>) => void;
  reasonProblem: string | undefined;
}>;

export function DraftFields({ version, draft, onChange, reasonProblem }: Props) {
  const t = useText(editTexts);
  const can = editableOf(version);
  return (
    <div className={styles['fields']}>
      <Field label={t.topic} value={draft.topic} onChange={(topic) => onChange({ topic })} />
      {can.key ? (
        <NullableField label={t.key} value={draft.key} onChange={(key) => onChange({ key })} />
      ) : (
        <p className={styles['hint']}>{t.keyIsBinary}</p>
      )}
      {can.value ? (
        <NullableField isLong label={t.value} value={draft.value} onChange={(value) => onChange({ value })} />
      ) : (
        <p className={styles['hint']}>{t.valueIsBinary}</p>
      )}
      <Headers headers={draft.headers} onChange={(headers) => onChange({ headers })} />
      <Field
        isLong
        label={t.reason}
        hint={t.reasonHint}
        value={draft.reason}
        problem={reasonProblem}
        onChange={(reason) => onChange({ reason })}
      />
    </div>
  );
}

type NullableProps = Readonly<{
  label: string;
  value: string | null;
  onChange: (value: string | null) => void;
  isLong?: boolean;
}>;

/** Text, or no text at all, which is not the same as an empty one. */
function NullableField({ label, value, onChange, isLong = false }: NullableProps) {
  const t = useText(editTexts);
  const shared = {
    'aria-label': label,
    value: value ?? '',
    spellCheck: false,
    disabled: value === null,
    className: isLong ? styles['editor'] : styles['line'],
  };
  return (
    <div className={styles['nullable']}>
      <span aria-hidden>{label}</span>
      {isLong ? (
        <textarea {...shared} rows={16} onChange={(event) => onChange(event.target.value)} />
      ) : (
        <input {...shared} autoComplete="off" onChange={(event) => onChange(event.target.value)} />
      )}
      <label className={styles['check']}>
        <input
          type="checkbox"
          checked={value === null}
          onChange={(event) => onChange(event.target.checked ? null : '')}
        />
        {t.isNull(label)}
      </label>
    </div>
  );
}

function Headers(
  props: Readonly<{ headers: readonly DraftHeader[]; onChange: (headers: readonly DraftHeader[]) => void }>,
) {
  const { headers, onChange } = props;
  const t = useText(editTexts);
  const change = (at: number, part: Partial<DraftHeader>): void =>
    onChange(headers.map((header, i) => (i === at ? { ...header, ...part } : header)));
  return (
    <fieldset className={styles['headers']}>
      <legend>{t.headers}</legend>
      {headers.map((header, i) => (
        <div key={i} className={styles['header']}>
          {header.kept === null ? (
            <>
              <input
                aria-label={t.headerName(i + 1)}
                value={header.key}
                spellCheck={false}
                onChange={(event) => change(i, { key: event.target.value })}
              />
              <input
                aria-label={t.headerValue(i + 1)}
                value={header.value}
                spellCheck={false}
                onChange={(event) => change(i, { value: event.target.value })}
              />
            </>
          ) : (
            <span>{t.headerKept(header.key)}</span>
          )}
          <Button
            kind="quiet"
            label={t.removeHeader(i + 1)}
            onPress={() => onChange(headers.filter((_, j) => j !== i))}
          >
            ✕
          </Button>
        </div>
      ))}
      <div>
        <Button onPress={() => onChange([...headers, { key: '', value: '', kept: null }])}>
          {t.addHeader}
        </Button>
      </div>
    </fieldset>
  );
}
