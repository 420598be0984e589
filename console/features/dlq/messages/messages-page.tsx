import { useQuery } from '@tanstack/react-query';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useContext, useEffect, useMemo, useState } from 'react';
import { Button } from '../../../components/button/button.tsx';
import { copyText } from '../../../components/button/copy-text.ts';
import { FilterBox } from '../../../components/filter/filter-box.tsx';
import { NoMatch } from '../../../components/filter/no-match.tsx';
import { StatusFacets } from '../../../components/filter/status-facets.tsx';
import type { MoreRows } from '../../../components/list/list-foot.tsx';
import { ListTable } from '../../../components/list/list-table.tsx';
import type { ListLive } from '../../../components/list/use-live-rows.ts';
import { usePagedRows } from '../../../components/list/use-paged-rows.ts';
import { useLiveReading } from '../../../components/live/use-live-reading.ts';
import { Page } from '../../../components/navigation/page.tsx';
import { PeekLayout } from '../../../components/peek/peek-layout.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { EmptyState } from '../../../components/states/panel-states.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { ClockContext } from '../../../components/time/clock.ts';
import { parseFilter } from '../../../lib/filter/filter.ts';
import { keepIds } from '../../../lib/kept-ids.ts';
import { keepList } from '../../../lib/kept-list.ts';
import { toQuery } from '../../../lib/filter/qualifiers.ts';
import {
  countSelected,
  nothingSelected,
  selectAllMatching,
  type Selection,
} from '../../../lib/selection/selection.ts';
import type { ListedMessage, MessageFacets, Operations } from '../../../lib/server-shapes.ts';
import { useMessageColumns } from './message-columns.tsx';
import { useReadAgain } from './use-read-again.ts';
import { MessagePeek } from './message-peek.tsx';
import { messageQualifiers } from './message-qualifiers.ts';
import { errorTitle } from './message-words.ts';
import { messagesTexts } from './texts/messages-texts.ts';

type MessageList = Operations['listMessages']['answer'];
type Parameters = readonly (readonly [string, string])[];

/** Dead letters: searched, previewed, selected for a redrive. */
export function MessagesPage() {
  const t = useText(messagesTexts);
  const { q = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const query = useParameters(q);
  const load = useReadAgain();
  const { loaded, more, refetch, live } = usePagedRows<MessageList, ListedMessage>({
    key: ['dlq', 'messages'],
    path: '/api/v1/dlq/messages',
    parameters: query.isValid ? query.parameters : [],
    rowsOf: ({ messages }) => messages,
    whyEmpty: q === '' ? 'nothing' : 'filter',
    isEnabled: query.isValid,
    live: { slices: ['dlq'], idOf: ({ id }) => id, load },
  });
  const facets = useFacets(query.isValid ? query.parameters : null);
  const apply = (filter: string): void => void navigate({ to: '/dlq/messages', search: { q: filter } });
  return (
    <Page title={t.messages}>
      <FilterBox value={q} onApply={apply} qualifiers={messageQualifiers} counts={facets?.facets ?? {}} />
      {facets === undefined ? null : (
        <StatusFacets
          label={t.status}
          qualifier="status"
          counts={facets.facets.status}
          isEstimate={facets.total_is_estimate === true}
          filter={q}
          onApply={apply}
        />
      )}
      {query.isValid ? (
        <LoadedPanel
          loaded={loaded}
          onRetry={refetch}
          renderEmpty={(reason) =>
            reason === 'filter' ? (
              <NoMatch filter={q} onApply={apply} />
            ) : (
              <EmptyState title={t.noMessages}>
                <p>{t.noMessagesHint}</p>
              </EmptyState>
            )
          }
        >
          {(messages, isRefreshing) => (
            <MessagesTable
              key={q}
              filter={q}
              messages={messages}
              more={more}
              isRefreshing={isRefreshing}
              live={live}
            />
          )}
        </LoadedPanel>
      ) : null}
    </Page>
  );
}

/** Ages count back from when the filter was applied, so that the pages of one list belong together. */
function useParameters(q: string) {
  const clock = useContext(ClockContext);
  return useMemo(() => toQuery(parseFilter(q), messageQualifiers, clock.now()), [q, clock]);
}

/** Values that occur among what matches, to choose a filter from. */
function useFacets(parameters: Parameters | null): MessageFacets | undefined {
  const api = useApi();
  const search = new URLSearchParams((parameters ?? []).map(([name, value]) => [name, value])).toString();
  const { data, refetch } = useQuery({
    queryKey: ['dlq', 'facets', search],
    queryFn: ({ signal }) =>
      api.get<MessageFacets>(`/api/v1/dlq/messages/facets${search === '' ? '' : `?${search}`}`, signal),
    enabled: parameters !== null,
    placeholderData: (last) => last,
  });
  useLiveReading({ slices: parameters === null ? [] : ['dlq'], read: () => refetch() });
  return data;
}

type TableProps = Readonly<{
  filter: string;
  messages: readonly ListedMessage[];
  more: MoreRows;
  isRefreshing: boolean;
  live: ListLive<ListedMessage> | undefined;
}>;

function MessagesTable({ filter, messages, more, isRefreshing, live }: TableProps) {
  const t = useText(messagesTexts);
  const api = useApi();
  const navigate = useNavigate();
  const { peek = '' } = useSearch({ strict: false });
  const [selection, setSelection] = useState<Selection>(nothingSelected);
  const columns = useMessageColumns(peek !== '');
  useEffect(() => keepList('messages', { filter, ids: messages.map(({ id }) => id) }), [filter, messages]);
  const setPeek = (id: string | null): void =>
    void navigate({
      to: '.',
      search: { ...(filter === '' ? {} : { q: filter }), ...(id === null ? {} : { peek: id }) },
      replace: true,
    });
  return (
    <PeekLayout
      label={t.preview}
      pane={peek === '' ? null : <MessagePeek key={peek} id={peek} />}
      onClose={() => setPeek(null)}
    >
      <ListTable
        caption={t.listCaption}
        rows={messages}
        idOf={({ id }) => id}
        nameOf={errorTitle}
        linkOf={({ id }) => ({ to: `/dlq/messages/${id}` })}
        columns={columns}
        more={more}
        live={live}
        isRefreshing={isRefreshing}
        initialCursor={peek}
        peek={{ id: peek === '' ? null : peek, onChange: setPeek }}
        {...(peek === '' ? {} : { onCursor: setPeek })}
        selection={{
          value: selection,
          onChange: setSelection,
          matching: {
            total: more.total,
            select: () => selectAllMatching(filter, new Date().toISOString()),
          },
          actions: <SelectionActions selection={selection} total={more.total} />,
        }}
        rowKeys={{
          e: ({ id }) => void navigate({ to: `/dlq/messages/${id}/edit` }),
          y: ({ id }) => void copyText(id),
          Y: ({ id }) => void copyText(location.origin + api.url(`/dlq/messages/${id}`)),
        }}
      />
    </PeekLayout>
  );
}

/** Many messages never act at once: they open a plan. */
function SelectionActions({ selection, total }: Readonly<{ selection: Selection; total: number | null }>) {
  const t = useText(messagesTexts);
  const navigate = useNavigate();
  const may = useMay('dlq:redrives:plan');
  const isTooFine = selection.kind === 'allMatching' && selection.minus.size > 0;
  const plan = (): void => {
    const search =
      selection.kind === 'some'
        ? { from: keepIds([...selection.ids]) }
        : selection.kind === 'allMatching'
          ? { q: selection.filter }
          : {};
    void navigate({ to: '/dlq/redrives/new', search });
  };
  return (
    <Button
      kind="primary"
      disabledReason={may.reason ?? (isTooFine ? t.cannotLeaveOut : undefined)}
      onPress={plan}
    >
      {t.planSelected(countSelected(selection, total))}
    </Button>
  );
}
