import { useNavigate } from '@tanstack/react-router';
import { copyText } from '../../../components/button/copy-text.ts';
import { useApi } from '../../../components/session/api-context.ts';
import { useSession } from '../../../components/session/session.tsx';
import { useRefusal } from '../../../components/session/use-may.ts';
import { useToast } from '../../../components/toast/toasts.tsx';
import { isMe } from '../../../lib/is-me.ts';
import { entryAddress, verbPlace, type Entry } from '../inbox-entry.ts';
import type { EntryActions } from '../use-entry-actions.ts';

type Options = Readonly<{
  filter: string;
  /** What is selected, else the entry of the cursor. */
  chosenOr: (entry: Entry) => readonly Entry[];
  actions: EntryActions;
  onFinish: (entry: Entry) => void;
  onNote: (entry: Entry) => void;
}>;

/** The keys of a row of the inbox. What they may not do they say. */
export function useRowKeys(options: Options): Readonly<Record<string, (entry: Entry) => void>> {
  const { filter, chosenOr, actions, onFinish, onNote } = options;
  const api = useApi();
  const toast = useToast();
  const navigate = useNavigate();
  const { me } = useSession();
  const refusalOf = useRefusal();
  const unlessRefused =
    (act: (entry: Entry) => void) =>
    (entry: Entry): void =>
      actions.refusal === undefined ? act(entry) : toast({ text: actions.refusal, isFailure: true });
  return {
    r(entry) {
      const refusal = refusalOf(entry.verb.permission);
      const place = verbPlace(entry);
      if (refusal !== undefined) toast({ text: refusal, isFailure: true });
      else if (place !== null) void navigate(place);
    },
    m(entry) {
      const chosen = chosenOr(entry);
      const isMine = chosen.every(({ owner }) => isMe(me, owner?.subject));
      void actions.assign(chosen, isMine ? null : 'me');
    },
    s(entry) {
      const chosen = chosenOr(entry);
      const [only] = chosen;
      if (chosen.length === 1 && only?.state === 'snoozed') void actions.reopen(only);
      else void actions.snooze(chosen);
    },
    d: unlessRefused(onFinish),
    n: unlessRefused(onNote),
    y: ({ id }) => void copyText(id),
    Y: (entry) => void copyText(location.origin + api.url(entryAddress(entry, filter))),
  };
}
