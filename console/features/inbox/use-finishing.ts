import { useState } from 'react';
import { reasonField, type Confirmation } from '../../components/dialog/confirmation.ts';
import { useText } from '../../components/text/use-text.ts';
import type { Entry } from './inbox-entry.ts';
import { inboxTexts } from './texts/inbox-texts.ts';
import type { EntryActions } from './use-entry-actions.ts';

type Finishing = Readonly<{
  ask: (entry: Entry) => void;
  confirmation: Confirmation | null;
  end: () => void;
}>;

/** An entry leaves the inbox by a decision, so its reason is asked for. */
export function useFinishing({ finish }: Pick<EntryActions, 'finish'>): Finishing {
  const t = useText(inboxTexts);
  const [entry, setEntry] = useState<Entry | null>(null);
  return {
    ask: setEntry,
    end: () => setEntry(null),
    confirmation:
      entry === null
        ? null
        : {
            title: t.doneTitle,
            action: t.doneAction,
            startsInField: true,
            consequence: t.doneConsequence(entry.title, entry.count),
            fields: [reasonField(t.reason, t.reasonHint)],
            perform: ({ reason = '' }) => finish(entry, reason.trim()),
          },
  };
}
