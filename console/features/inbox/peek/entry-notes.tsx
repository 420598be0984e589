import { Trash2 } from 'lucide-react';
import { useEffect, useRef, useState, type KeyboardEvent, type SubmitEvent } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { useHold } from '../../../components/live/use-hold.ts';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useSession } from '../../../components/session/session.tsx';
import { useMay } from '../../../components/session/use-may.ts';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { useToast } from '../../../components/toast/toasts.tsx';
import { messageOf } from '../../../lib/api/api-failure.ts';
import { isMe } from '../../../lib/is-me.ts';
import { keep, readKept } from '../../../lib/session-store.ts';
import { entryPath, type Entry, type EntryDetails } from '../inbox-entry.ts';
import styles from '../inbox.module.css';
import { inboxTexts } from '../texts/inbox-texts.ts';

/** Somebody wants to write a note: the field takes the focus once. */
export type NoteRequest = Readonly<{ isAsked: boolean; onBegin: () => void }>;

type Props = Readonly<{
  entry: Entry;
  notes: EntryDetails['notes_list'];
  request: NoteRequest;
  /** The notes are others now. */
  onChange: () => void;
}>;

/** What people wrote about an entry. Own notes can be deleted. */
export function EntryNotes({ entry, notes, request, onChange }: Props) {
  const t = useText(inboxTexts);
  return (
    <section className={styles['panel']} aria-labelledby="entry-notes">
      <h3 id="entry-notes">{t.notes}</h3>
      {notes.length === 0 ? (
        <p className={styles['hint']}>{t.noNotes}</p>
      ) : (
        <ul className={styles['noteList']}>
          {notes.map((note) => (
            <Note key={note.id} entry={entry} note={note} onChange={onChange} />
          ))}
        </ul>
      )}
      <NoteForm entry={entry} request={request} onChange={onChange} />
    </section>
  );
}

type NoteProps = Pick<Props, 'entry' | 'onChange'> & Readonly<{ note: EntryDetails['notes_list'][number] }>;

function Note({ entry, note, onChange }: NoteProps) {
  const t = useText(inboxTexts);
  const { me } = useSession();
  const remove = useRemoveNote(entry, onChange);
  return (
    <li>
      <div className={styles['noteHead']}>
        <strong>{note.author_name}</strong>
        <Time at={note.at} />
        {isMe(me, note.author) ? (
          <Button kind="quiet" label={t.deleteNote} onPress={() => void remove(note)}>
            <Trash2 size={14} aria-hidden />
          </Button>
        ) : null}
      </div>
      <p className={styles['noteText']}>
        <MaskedText text={note.text} />
      </p>
    </li>
  );
}

function useRemoveNote({ id }: Entry, onChange: () => void) {
  const t = useText(inboxTexts);
  const api = useApi();
  const toast = useToast();
  const path = `${entryPath(id)}/notes`;
  return async (note: NoteProps['note']): Promise<void> => {
    const attempt = async (act: () => Promise<unknown>, text: string, undo?: () => void): Promise<void> => {
      try {
        await act();
        toast({ text, ...(undo === undefined ? {} : { undo }) });
      } catch (error) {
        toast({ text: messageOf(error), isFailure: true });
      }
      onChange();
    };
    await attempt(
      () => api.send('DELETE', `${path}/${encodeURIComponent(note.id)}`),
      t.noteDeleted,
      () => void attempt(() => api.send('POST', path, { body: { text: note.text } }), t.noteAdded),
    );
  };
}

const maxLength = 2000;

function NoteForm({ entry, request, onChange }: Omit<Props, 'notes'>) {
  const t = useText(inboxTexts);
  const field = useRef<HTMLTextAreaElement>(null);
  const { text, setText, failure, isBusy, add } = useNewNote(entry, onChange);
  const may = useMay('console:entries:edit');
  useEffect(() => {
    if (!request.isAsked) return;
    field.current?.focus();
    request.onBegin();
  }, [request]);
  const submit = (event: SubmitEvent | KeyboardEvent): void => {
    event.preventDefault();
    if (may.isAllowed) void add().then((isAdded) => isAdded && focusRow(entry.id));
  };
  return (
    <form className={styles['noteForm']} onSubmit={submit}>
      <label>
        {t.note}
        <textarea
          ref={field}
          rows={2}
          maxLength={maxLength}
          value={text}
          readOnly={!may.isAllowed}
          aria-describedby="note-hint"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit(event);
            if (event.key !== 'Escape') return;
            // What was typed stays in the field, and the preview open.
            event.preventDefault();
            focusRow(entry.id);
          }}
        />
      </label>
      <span id="note-hint" className={styles['hint']}>
        {t.noteHint}
      </span>
      {failure === null ? null : (
        <p role="alert" className={styles['failure']}>
          {failure}
        </p>
      )}
      <Button type="submit" keys="Control+Enter" isBusy={isBusy} disabledReason={may.reason}>
        {t.addNote}
      </Button>
    </form>
  );
}

/** A note that is not added yet stays with its entry, also over a reload. */
function useNewNote({ id }: Entry, onChange: () => void) {
  const t = useText(inboxTexts);
  const api = useApi();
  const toast = useToast();
  const draft = `note-${id}`;
  const [text, setText] = useState(() => readKept(draft) ?? '');
  const [failure, setFailure] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  useHold(text === '' ? null : 'edit');
  const change = (next: string): void => {
    setText(next);
    keep(draft, next);
  };
  const add = async (): Promise<boolean> => {
    if (text.trim() === '' || isBusy) return false;
    setBusy(true);
    setFailure(null);
    try {
      await api.send('POST', `${entryPath(id)}/notes`, { body: { text: text.trim() } });
      change('');
      toast({ text: t.noteAdded });
      onChange();
      return true;
    } catch (error) {
      setFailure(messageOf(error));
      return false;
    } finally {
      setBusy(false);
    }
  };
  return { text, setText: change, failure, isBusy, add };
}

/** Back to the list, where the keys are. */
function focusRow(id: string): void {
  document.querySelector<HTMLElement>(`[data-row-id="${CSS.escape(id)}"] [data-row-link]`)?.focus();
}
