import { TabLinks } from '../../../components/tabs/tab-links.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { parseFilter } from '../../../lib/filter/filter.ts';
import { filterOfState, stateOfFilter, type InboxAnswer } from '../inbox-entry.ts';
import { inboxTexts } from '../texts/inbox-texts.ts';

const states = ['open', 'snoozed', 'done'] as const;

/** What is open, snoozed, and done; each with the rest of the filter. */
export function InboxTabs({
  filter,
  counts,
}: Readonly<{ filter: string; counts: InboxAnswer['counts'] | undefined }>) {
  const t = useText(inboxTexts);
  const terms = parseFilter(filter);
  const current = stateOfFilter(terms);
  return (
    <TabLinks
      label={t.states}
      tabs={states.map((state) => ({
        to: '/inbox',
        search: filterOfState(terms, state),
        label: t[state],
        count: counts?.[state] ?? null,
        isCurrent: state === current,
      }))}
    />
  );
}
