import { useNavigate, useSearch } from '@tanstack/react-router';
import { useMemo } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { FilterBox } from '../../../components/filter/filter-box.tsx';
import { Page } from '../../../components/navigation/page.tsx';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useSession } from '../../../components/session/session.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { parseFilter } from '../../../lib/filter/filter.ts';
import { toQuery } from '../../../lib/filter/qualifiers.ts';
import { inboxQualifiers } from '../inbox-qualifiers.ts';
import { countValues } from './count-values.ts';
import { EmptyInbox } from './empty-inbox.tsx';
import { EntriesTable } from './entries-table.tsx';
import { InboxTabs } from './inbox-tabs.tsx';
import { MissingParts } from './missing-parts.tsx';
import { inboxTexts } from '../texts/inbox-texts.ts';
import { useInbox } from './use-inbox.ts';

/** What needs attention, of all slices, the most dangerous first. */
export function InboxPage() {
  const t = useText(inboxTexts);
  const { q = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const { me } = useSession();
  // No qualifier of the inbox is an age.
  const query = useMemo(() => toQuery(parseFilter(q), inboxQualifiers, 0), [q]);
  const inbox = useInbox({ parameters: query.isValid ? query.parameters : [], isEnabled: query.isValid });
  const { facts } = inbox;
  const apply = (filter: string): void =>
    void navigate({ to: '/inbox', search: filter === '' ? {} : { q: filter } });
  return (
    <Page
      title={t.area}
      facts={facts === undefined ? undefined : t.needAttention(facts.counts.open)}
      actions={<Button onPress={inbox.refetch}>{t.reload}</Button>}
    >
      <InboxTabs filter={q} counts={facts?.counts} />
      <FilterBox
        value={q}
        onApply={apply}
        qualifiers={inboxQualifiers}
        counts={countValues(facts?.entries ?? [], me)}
      />
      <MissingParts facts={facts} onRetry={inbox.refetch} />
      {query.isValid ? (
        <LoadedPanel
          loaded={inbox.loaded}
          onRetry={inbox.refetch}
          renderEmpty={() => <EmptyInbox filter={q} facts={facts} onApply={apply} />}
        >
          {(entries, isRefreshing) => (
            <EntriesTable key={q} filter={q} entries={entries} inbox={inbox} isRefreshing={isRefreshing} />
          )}
        </LoadedPanel>
      ) : null}
    </Page>
  );
}
