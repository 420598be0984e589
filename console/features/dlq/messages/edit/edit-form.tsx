import { useBlocker, useNavigate } from '@tanstack/react-router';
import { useRef, useState, type FormEvent } from 'react';
import { Button } from '../../../../components/button/button.tsx';
import { LinkButton } from '../../../../components/button/link-button.tsx';
import { Field } from '../../../../components/form/form-parts.tsx';
import { useHold } from '../../../../components/live/use-hold.ts';
import { usePageKeys } from '../../../../components/navigation/use-page-keys.ts';
import { useMay } from '../../../../components/session/use-may.ts';
import { useText } from '../../../../components/text/use-text.ts';
import { ApiFailure } from '../../../../lib/api/api-failure.ts';
import type { MessageHandle } from '../use-message.ts';
import { DraftFields, DraftHeaders } from './draft-fields.tsx';
import { DraftReview } from './draft-review.tsx';
import type { Version } from './draft.ts';
import styles from './edit.module.css';
import { editTexts } from './texts/edit-texts.ts';
import { useDraft, useSave, useValidation } from './use-edit.ts';

type Props = Readonly<{ id: string; version: Version; handle: MessageHandle }>;

/** The draft beside what it would change, and what the server says of it. */
export function EditForm({ id, version, handle }: Props) {
  const t = useText(editTexts);
  const [base, setBase] = useState(version);
  const { draft, change, reset, isChanged } = useDraft(base);
  const { validation, error: validationError } = useValidation(id, base, draft);
  const isNewer = version.version !== base.version;
  const { submit, isBusy, error, isTried } = useSubmit(
    { id, version: base, handle },
    draft,
    isChanged && !isNewer,
  );
  const may = useMay('dlq:messages:edit');
  const reason =
    may.reason ?? (isNewer ? t.newerVersion(version.version) : isChanged ? undefined : t.nothingChanged);
  useHold(isChanged ? 'edit' : null);
  usePageKeys({ '$mod+Enter': () => void submit() });
  return (
    <form
      className={styles['form']}
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        void submit();
      }}
    >
      {isNewer ? (
        <div role="alert" className={styles['conflict']}>
          <p>{t.newerVersion(version.version)}</p>
          <Button
            onPress={() => {
              setBase(version);
              reset(version);
            }}
          >
            {t.startOver}
          </Button>
        </div>
      ) : null}
      <DraftFields version={base} draft={draft} onChange={change} />
      <div className={styles['columns']}>
        <div className={styles['fields']}>
          <DraftHeaders headers={draft.headers} onChange={(headers) => change({ headers })} />
          <Field
            isLong
            label={t.reason}
            hint={t.reasonHint}
            value={draft.reason}
            problem={isTried && draft.reason.trim() === '' ? t.reasonRequired : undefined}
            onChange={(changed) => change({ reason: changed })}
          />
        </div>
        <DraftReview version={base} draft={draft} validation={validation} error={validationError} />
      </div>
      {error === null ? null : (
        <p role="alert" className={styles['conflict']}>
          {error instanceof ApiFailure && error.status === 412 ? t.changedMeanwhile : error.message}
        </p>
      )}
      <div className={styles['buttons']}>
        <Button type="submit" kind="primary" keys="Control+Enter" isBusy={isBusy} disabledReason={reason}>
          {t.save}
        </Button>
        <LinkButton to={`/dlq/messages/${id}`}>{t.back}</LinkButton>
        <span className={styles['hint']}>{t.neverOverwrites}</span>
      </div>
    </form>
  );
}

/** Saves, and leaves for the message. Until then leaving with changes asks. */
function useSubmit(
  { id, version, handle }: Props,
  draft: Parameters<ReturnType<typeof useSave>>[0],
  canSave: boolean,
) {
  const t = useText(editTexts);
  const navigate = useNavigate();
  const save = useSave(id, version, handle);
  const isSaved = useRef(false);
  const [state, setState] = useState<Readonly<{ isBusy: boolean; isTried: boolean; error: Error | null }>>({
    isBusy: false,
    isTried: false,
    error: null,
  });
  useBlocker({
    // oxlint-disable-next-line no-alert -- The browser asks the same question when the tab is closed.
    shouldBlockFn: () => canSave && !isSaved.current && !window.confirm(t.leave),
    enableBeforeUnload: () => canSave && !isSaved.current,
  });
  const submit = async (): Promise<void> => {
    if (state.isBusy || !canSave || draft.reason.trim() === '') {
      setState({ ...state, isTried: true });
      return;
    }
    setState({ isBusy: true, isTried: true, error: null });
    try {
      await save(draft);
      isSaved.current = true;
      await navigate({ to: `/dlq/messages/${id}`, search: { tab: 'payload' } });
    } catch (error) {
      await handle.readAgain();
      setState({
        isBusy: false,
        isTried: true,
        error: error instanceof Error ? error : new Error(String(error)),
      });
    }
  };
  return { ...state, submit };
}
