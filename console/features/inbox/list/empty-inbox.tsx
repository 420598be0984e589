import { NoMatch } from '../../../components/filter/no-match.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { parseFilter } from '../../../lib/filter/filter.ts';
import { stateOfFilter, type InboxAnswer } from '../inbox-entry.ts';
import { inboxTexts } from '../texts/inbox-texts.ts';
import { CalmFacts } from './calm-facts.tsx';

type Props = Readonly<{
  filter: string;
  facts: InboxAnswer | undefined;
  onApply: (filter: string) => void;
}>;

/** No entry matches. That all is well is said only of an inbox that was read as a whole. */
export function EmptyInbox({ filter, facts, onApply }: Props) {
  const t = useText(inboxTexts);
  const terms = parseFilter(filter);
  if (terms.some(({ qualifier }) => qualifier !== 'is')) return <NoMatch filter={filter} onApply={onApply} />;
  const isWhole = facts?.unavailable === undefined;
  switch (stateOfFilter(terms)) {
    case 'snoozed':
      return <Empty title={t.noSnoozed} hint={t.noSnoozedHint} />;
    case 'done':
      return <Empty title={t.noDone} hint={t.noDoneHint} />;
    case 'open':
      return isWhole ? (
        <EmptyState title={t.calm}>
          <CalmFacts />
        </EmptyState>
      ) : (
        <Empty title={t.nothingElse} hint={t.nothingElseHint} />
      );
  }
}

function Empty({ title, hint }: Readonly<{ title: string; hint: string }>) {
  return (
    <EmptyState title={title}>
      <p>{hint}</p>
    </EmptyState>
  );
}
