import { Button } from '../../../components/button/button.tsx';
import { useSession } from '../../../components/session/session.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { isMe } from '../../../lib/is-me.ts';
import type { Entry } from '../inbox-entry.ts';
import styles from '../inbox.module.css';
import { inboxTexts } from '../texts/inbox-texts.ts';
import type { EntryActions } from '../use-entry-actions.ts';

type Props = Readonly<{ entry: Entry; actions: EntryActions; onFinish: (entry: Entry) => void }>;

/** Owner, snooze and done. */
export function EntryButtons({ entry, actions, onFinish }: Props) {
  const t = useText(inboxTexts);
  const { me } = useSession();
  const { refusal } = actions;
  const isMine = isMe(me, entry.owner?.subject);
  return (
    <div className={styles['actions']}>
      <Button
        keys="m"
        disabledReason={refusal}
        onPress={() => void actions.assign([entry], isMine ? null : 'me')}
      >
        {isMine ? t.unassign : entry.owner === null ? t.assignMe : t.takeOver(entry.owner.name)}
      </Button>
      {entry.state === 'open' ? (
        <>
          <Button keys="s" disabledReason={refusal} onPress={() => void actions.snooze([entry])}>
            {t.snooze}
          </Button>
          <Button keys="d" disabledReason={refusal} onPress={() => onFinish(entry)}>
            {t.markDone}
          </Button>
        </>
      ) : (
        <Button
          disabledReason={refusal ?? (entry.count === 0 ? t.doneItself : undefined)}
          onPress={() => void actions.reopen(entry)}
        >
          {t.unsnooze}
        </Button>
      )}
    </div>
  );
}
