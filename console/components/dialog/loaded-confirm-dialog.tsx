import { AlertDialog } from '@base-ui/react/alert-dialog';
import { useRef, useState, type SubmitEvent } from 'react';
import { Button } from '../button/button.tsx';
import { useHold } from '../live/use-hold.ts';
import { kitTexts } from '../kit-texts/kit-texts.ts';
import { useText } from '../text/use-text.ts';
import { ConfirmationInput } from './confirmation-input.tsx';
import type { Confirmation } from './confirmation.ts';
import styles from './dialog.module.css';

/**
 * Focus begins on Cancel, so that no key that was meant for the list confirms, unless a text is asked for. Ctrl+Enter
 * confirms.
 */
export function LoadedConfirmDialog(props: Readonly<{ confirmation: Confirmation; onEnd: () => void }>) {
  const { confirmation, onEnd } = props;
  const { fields = [], typed } = confirmation;
  const t = useText(kitTexts);
  const cancel = useRef<HTMLButtonElement>(null);
  const { values, setValue, typedText, setTypedText, state, missing, isComplete, perform } = useConfirmation(
    confirmation,
    onEnd,
  );
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    void perform();
  };
  const why = missing === undefined ? t.typeToConfirm(typed ?? '') : `${missing.label}: ${t.required}`;
  return (
    <AlertDialog.Root open onOpenChange={(isOpen) => (isOpen || state.isBusy ? undefined : onEnd())}>
      <AlertDialog.Portal>
        <AlertDialog.Backdrop className={styles['backdrop']} />
        <AlertDialog.Popup
          className={styles['popup']}
          initialFocus={() => firstField(confirmation) ?? cancel.current}
          onKeyDown={(event) => {
            event.stopPropagation();
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void perform();
          }}
        >
          <form onSubmit={submit} className={styles['form']}>
            <AlertDialog.Title className={styles['title']}>{confirmation.title}</AlertDialog.Title>
            <AlertDialog.Description render={<div />} className={styles['consequence']}>
              {confirmation.consequence}
            </AlertDialog.Description>
            {fields.map((field) => (
              <ConfirmationInput
                key={field.name}
                field={field}
                value={values[field.name] ?? ''}
                onChange={(value) => setValue(field.name, value)}
              />
            ))}
            {typed === undefined ? null : (
              <label className={styles['field']}>
                {t.typeToConfirm(typed)}
                <input value={typedText} autoComplete="off" onChange={(e) => setTypedText(e.target.value)} />
              </label>
            )}
            {state.error === null ? null : (
              <p role="alert" className={styles['error']}>
                {state.error}
              </p>
            )}
            <div className={styles['buttons']}>
              <Button ref={cancel} keys="Escape" onPress={onEnd}>
                {t.cancel}
              </Button>
              <Button
                type="submit"
                keys="Control+Enter"
                kind={confirmation.isDangerous === true ? 'danger' : 'primary'}
                isBusy={state.isBusy}
                disabledReason={isComplete ? undefined : why}
              >
                {confirmation.action}
              </Button>
            </div>
          </form>
        </AlertDialog.Popup>
      </AlertDialog.Portal>
    </AlertDialog.Root>
  );
}

function firstField({ startsInField = false }: Confirmation): HTMLElement | null {
  return startsInField ? document.querySelector('[role="alertdialog"] :is(input, textarea)') : null;
}

/** What was entered, what is still missing, and how it goes. */
function useConfirmation(confirmation: Confirmation, onEnd: () => void) {
  useHold('dialog');
  const { fields = [], typed } = confirmation;
  const [values, setValues] = useState<Readonly<Record<string, string>>>(() =>
    Object.fromEntries(fields.map(({ name, initial = '' }) => [name, initial])),
  );
  const [typedText, setTypedText] = useState('');
  const [state, setState] = useState<Readonly<{ isBusy: boolean; error: string | null }>>({
    isBusy: false,
    error: null,
  });
  const missing = fields.find(
    ({ name, isRequired = false }) => isRequired && (values[name] ?? '').trim() === '',
  );
  const isComplete = missing === undefined && (typed === undefined || typedText === typed);
  const perform = async (): Promise<void> => {
    if (!isComplete || state.isBusy) return;
    setState({ isBusy: true, error: null });
    try {
      await confirmation.perform(values);
      onEnd();
    } catch (error) {
      setState({ isBusy: false, error: error instanceof Error ? error.message : String(error) });
    }
  };
  const setValue = (name: string, value: string): void =>
    setValues((before) => ({ ...before, [name]: value }));
  return { values, setValue, typedText, setTypedText, state, missing, isComplete, perform };
}
