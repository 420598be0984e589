import { useText } from '../../../../components/text/use-text.ts';
import type { EditValidation } from '../../../../lib/server-shapes.ts';
import { formatBytes } from '../../../../lib/sizes.ts';
import { changesOf, draftOf, type Draft, type Version } from './draft.ts';
import styles from './edit.module.css';
import { editTexts } from './texts/edit-texts.ts';

type Props = Readonly<{
  version: Version;
  draft: Draft;
  validation: EditValidation | undefined;
  error: Error | null;
}>;

/** What the draft changes, and what the server says of it. */
export function DraftReview({ version, draft, validation, error }: Props) {
  const t = useText(editTexts);
  const before = draftOf(version);
  const changes = changesOf(draft, version);
  return (
    <section className={styles['review']} aria-labelledby="review">
      <h2 id="review">{t.review}</h2>
      {Object.keys(changes).length === 0 ? <p>{t.nothingChanged}</p> : null}
      {'target_topic' in changes ? (
        <Change label={t.topic} before={before.topic} after={draft.topic} />
      ) : null}
      {'key' in changes ? <Change label={t.key} before={before.key} after={draft.key} /> : null}
      {'value' in changes ? <p>{t.valueChanged}</p> : null}
      {'headers' in changes ? <p>{t.headersChanged}</p> : null}
      {error === null ? null : <p role="alert">{error.message}</p>}
      {validation === undefined ? null : <Verdict validation={validation} />}
    </section>
  );
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
