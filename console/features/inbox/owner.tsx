import { useSession } from '../../components/session/session.tsx';
import { useText } from '../../components/text/use-text.ts';
import { isMe } from '../../lib/is-me.ts';
import type { Entry } from './inbox-entry.ts';
import { inboxTexts } from './texts/inbox-texts.ts';

export function Owner({ owner }: Pick<Entry, 'owner'>) {
  const t = useText(inboxTexts);
  const { me } = useSession();
  if (owner === null)
    return (
      <>
        <span aria-hidden>–</span>
        <span className="visually-hidden">{t.nobody}</span>
      </>
    );
  return isMe(me, owner.subject) ? <strong>{t.you}</strong> : <span title={owner.subject}>{owner.name}</span>;
}
