import { Button } from '../../../components/button/button.tsx';
import { useText } from '../../../components/text/use-text.ts';
import type { Selection } from '../../../lib/selection/selection.ts';
import type { Entry } from '../inbox-entry.ts';
import { inboxTexts } from '../texts/inbox-texts.ts';
import type { EntryActions } from '../use-entry-actions.ts';

type Props = Readonly<{ selection: Selection; entries: readonly Entry[]; actions: EntryActions }>;

/** What can be done with several entries at once: what can be undone. */
export function EntrySelection({ selection, entries, actions }: Props) {
  const t = useText(inboxTexts);
  const chosen = selection.kind === 'some' ? entries.filter(({ id }) => selection.ids.has(id)) : [];
  const { progress, refusal } = actions;
  if (progress !== null)
    return (
      <>
        <span role="status">{t.progress(progress.done, progress.all)}</span>
        <Button onPress={actions.stop}>{t.stop}</Button>
      </>
    );
  const notOpen = chosen.every(({ state }) => state === 'open') ? undefined : t.notSnoozed;
  return (
    <>
      <Button keys="m" disabledReason={refusal} onPress={() => void actions.assign(chosen, 'me')}>
        {t.assignSelected(chosen.length)}
      </Button>
      <Button keys="s" disabledReason={refusal ?? notOpen} onPress={() => void actions.snooze(chosen)}>
        {t.snoozeSelected(chosen.length)}
      </Button>
    </>
  );
}
