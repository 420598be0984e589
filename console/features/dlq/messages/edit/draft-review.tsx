import { useMemo } from 'react';
import { useText } from '../../../../components/text/use-text.ts';
import type { EditValidation } from '../../../../lib/server-shapes.ts';
import { formatBytes } from '../../../../lib/sizes.ts';
import { changesOf, draftOf, type Draft, type Version } from './draft.ts';
import styles from './edit.module.css';
import { diffLines } from './line-diff.ts';
import { editTexts } from './texts/edit-texts.ts';

type Props = Readonly<{
  version: Version;
  draft: Draft;
  validation: EditValidation | undefined;
  error: Error | null;
}>;

const signs = { same: ' ', removed: '-', added: '+' } as const;

/** What the draft changes, and what the server says of it. */
export function DraftReview({ version, draft, validation, error }: Props) {
  const t = useText(editTexts);
  const before = draftOf(version);
  const lines = useMemo(
    () => diffLines(before.value ?? '', draft.value ?? '').filter((_, i, all) => isNearChange(all, i)),
    [before.value, draft.value],
  );
  const changes = changesOf(draft, version);
  return (
    <section className={styles['review']} aria-labelledby="review">
      <h2 id="review">{t.review}</h2>
      {Object.keys(changes).length === 0 ? <p>{t.nothingChanged}</p> : null}
      {'target_topic' in changes ? (
        <Change label={t.topic} before={before.topic} after={draft.topic} />
      ) : null}
      {'key' in changes ? <Change label={t.key} before={before.key} after={draft.key} /> : null}
      {'value' in changes ? (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- It scrolls.
        <pre className={styles['diff']} tabIndex={0} role="region" aria-label={t.valueChanges}>
          {lines.map(({ kind, text }, i) => (
            <span key={i} data-kind={kind}>
              {signs[kind]} {text}
              {'\n'}
            </span>
          ))}
        </pre>
      ) : null}
      {'headers' in changes ? <p>{t.headersChanged}</p> : null}
      {error === null ? null : <p role="alert">{error.message}</p>}
      {validation === undefined ? null : <Verdict validation={validation} />}
    </section>
  );
}

const around = 3;

/** Lines that are far from every change only take space. */
function isNearChange(lines: readonly Readonly<{ kind: string }>[], at: number): boolean {
  return lines.slice(Math.max(0, at - around), at + around + 1).some(({ kind }) => kind !== 'same');
}

function Change(props: Readonly<{ label: string; before: string | null; after: string | null }>) {
  return (
    <p>
      {props.label}: <del>{props.before ?? 'null'}</del> → <ins>{props.after ?? 'null'}</ins>
    </p>
  );
}

function Verdict({ validation }: Readonly<{ validation: EditValidation }>) {
  const t = useText(editTexts);
  const { problems, warnings, value, target } = validation;
  const groups = target.consumer_groups ?? [];
  return (
    <div role="status" className={styles['verdict']}>
      {value === null || value.bytes === null ? null : (
        <p>{t.valueIs(value.format, formatBytes(value.bytes))}</p>
      )}
      {groups.length === 0 ? null : <p>{t.readBy(target.topic, groups.join(', '))}</p>}
      {problems.map(({ code, message }) => (
        <p key={code + message} className={styles['problem']}>
          {message}
        </p>
      ))}
      {warnings.map(({ field, reason, message }) => (
        <p key={field + reason} className={styles['warning']}>
          {field}: {message}
        </p>
      ))}
      {problems.length === 0 ? <p>{t.canBeSaved(validation.version)}</p> : null}
    </div>
  );
}
