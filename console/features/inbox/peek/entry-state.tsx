import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { shortSubject, type Entry } from '../inbox-entry.ts';
import styles from '../inbox.module.css';
import { inboxTexts } from '../texts/inbox-texts.ts';

/** What was decided about an entry that is not open. */
export function EntryState({ entry: { state, snooze, done } }: Readonly<{ entry: Entry }>) {
  const t = useText(inboxTexts);
  if (state === 'snoozed' && snooze !== null)
    return (
      <p className={styles['state']}>
        {t.snoozedAt(snooze.count)} {snooze.by === null ? '' : `${shortSubject(snooze.by)} · `}
        <Time at={snooze.at} />
      </p>
    );
  if (state !== 'done' || done === null) return null;
  return (
    <p className={styles['state']}>
      <strong>{done.by === null ? t.doneItself : t.doneBy(shortSubject(done.by))}</strong> ·{' '}
      <Time at={done.at} />
      {done.reason === null ? null : (
        <>
          <br />
          <MaskedText text={done.reason} />
        </>
      )}
    </p>
  );
}
