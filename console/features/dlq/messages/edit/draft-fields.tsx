import { useMemo } from 'react';
import { Button } from '../../../../components/button/button.tsx';
import { DiffEditor } from '../../../../components/code/diff-editor.tsx';
import { useText } from '../../../../components/text/use-text.ts';
import { Field } from '../../../../components/form/form-parts.tsx';
import { formatJson } from '../../../../lib/exact-json/format-json.ts';
import { draftOf, editableOf, type Draft, type DraftHeader, type Version } from './draft.ts';
import styles from './edit.module.css';
import { editTexts } from './texts/edit-texts.ts';

type Props = Readonly<{
  version: Version;
  draft: Draft;
  onChange: (part: Partial<Draft>) => void;
}>;

/** Where the record goes and what it says: the stored version on the left, the new one on the right. */
export function DraftFields({ version, draft, onChange }: Props) {
  const t = useText(editTexts);
  const can = editableOf(version);
  return (
    <div className={styles['fields']}>
      <div className={styles['columns']}>
        <Field label={t.topic} value={draft.topic} onChange={(topic) => onChange({ topic })} />
        {can.key ? (
          <Key value={draft.key} onChange={(key) => onChange({ key })} />
        ) : (
          <p className={styles['hint']}>{t.keyIsBinary}</p>
        )}
      </div>
      {can.value ? (
        <Value
          before={draftOf(version).value}
          value={draft.value}
          onChange={(value) => onChange({ value })}
        />
      ) : (
        <p className={styles['hint']}>{t.valueIsBinary}</p>
      )}
    </div>
  );
}

type NullableProps = Readonly<{ value: string | null; onChange: (value: string | null) => void }>;

function Key({ value, onChange }: NullableProps) {
  const t = useText(editTexts);
  return (
    <div className={styles['nullable']}>
      <span aria-hidden>{t.key}</span>
      <input
        aria-label={t.key}
        value={value ?? ''}
        spellCheck={false}
        autoComplete="off"
        disabled={value === null}
        className={styles['line']}
        onChange={(event) => onChange(event.target.value)}
      />
      <NullBox label={t.key} value={value} onChange={onChange} />
    </div>
  );
}

function Value({ before, value, onChange }: NullableProps & Readonly<{ before: string | null }>) {
  const t = useText(editTexts);
  const isJson = useMemo(() => before !== null && formatJson(before).isJson, [before]);
  return (
    <div className={styles['nullable']}>
      {value === null ? (
        <span>{t.value}</span>
      ) : (
        <DiffEditor
          label={t.value}
          beforeLabel={t.valueBefore}
          before={before ?? ''}
          value={value}
          isJson={isJson}
          onChange={onChange}
        />
      )}
      <NullBox label={t.value} value={value} onChange={onChange} />
    </div>
  );
}

/** No text at all is not the same as an empty one. */
function NullBox({ label, value, onChange }: NullableProps & Readonly<{ label: string }>) {
  const t = useText(editTexts);
  return (
    <label className={styles['check']}>
      <input
        type="checkbox"
        checked={value === null}
        onChange={(event) => onChange(event.target.checked ? null : '')}
      />
      {t.isNull(label)}
    </label>
  );
}

export function DraftHeaders(
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
