import { useNavigate, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { ConfirmDialog } from '../../../components/dialog/confirm-dialog.tsx';
import { ListTable } from '../../../components/list/list-table.tsx';
import { PeekLayout } from '../../../components/peek/peek-layout.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { nothingSelected, type Selection } from '../../../lib/selection/selection.ts';
import { entryPlace, type Entry } from '../inbox-entry.ts';
import { EntryPeek } from '../peek/entry-peek.tsx';
import { inboxTexts } from '../texts/inbox-texts.ts';
import { useEntryActions } from '../use-entry-actions.ts';
import { useFinishing } from '../use-finishing.ts';
import styles from '../inbox.module.css';
import { EntrySelection } from './entry-selection.tsx';
import { useEntryColumns } from './entry-columns.tsx';
import type { InboxHandle } from './use-inbox.ts';
import { useRowKeys } from './use-row-keys.ts';

type TableProps = Readonly<{
  filter: string;
  entries: readonly Entry[];
  inbox: InboxHandle;
  isRefreshing: boolean;
}>;

/** The entries with their preview, their keys and what is done with several of them. */
export function EntriesTable({ filter, entries, inbox, isRefreshing }: TableProps) {
  const t = useText(inboxTexts);
  const { peek = '' } = useSearch({ strict: false });
  const navigate = useNavigate();
  const [selection, setSelection] = useState<Selection>(nothingSelected);
  const [noteAsked, setNoteAsked] = useState<string | null>(null);
  const actions = useEntryActions(inbox.readAgain);
  const finishing = useFinishing(actions);
  const columns = useEntryColumns(peek !== '');
  const setPeek = (id: string | null): void =>
    void navigate({
      to: '.',
      search: { ...(filter === '' ? {} : { q: filter }), ...(id === null ? {} : { peek: id }) },
      replace: true,
    });
  const chosenOr = (entry: Entry): readonly Entry[] =>
    selection.kind === 'some' ? entries.filter(({ id }) => selection.ids.has(id)) : [entry];
  const rowKeys = useRowKeys({
    filter,
    chosenOr,
    actions,
    onFinish: finishing.ask,
    onNote: (entry) => {
      setPeek(entry.id);
      setNoteAsked(entry.id);
    },
  });
  return (
    <div className={styles['list']}>
      <PeekLayout
        label={t.preview}
        pane={
          peek === '' ? null : (
            <EntryPeek
              key={peek}
              id={peek}
              actions={actions}
              onFinish={finishing.ask}
              note={{ isAsked: noteAsked === peek, onBegin: () => setNoteAsked(null) }}
            />
          )
        }
        onClose={() => setPeek(null)}
      >
        <ListTable
          caption={t.caption}
          rows={entries}
          idOf={({ id }) => id}
          nameOf={({ title }) => title}
          linkOf={entryPlace}
          columns={columns}
          live={inbox.live}
          isRefreshing={isRefreshing}
          initialCursor={peek}
          peek={{ id: peek === '' ? null : peek, onChange: setPeek }}
          {...(peek === '' ? {} : { onCursor: setPeek })}
          selection={{
            value: selection,
            onChange: setSelection,
            actions: <EntrySelection selection={selection} entries={entries} actions={actions} />,
          }}
          rowKeys={rowKeys}
        />
        <Foot shown={entries.length} more={inbox.facts?.more ?? 0} />
      </PeekLayout>
      <ConfirmDialog confirmation={finishing.confirmation} onEnd={finishing.end} />
    </div>
  );
}

function Foot({ shown, more }: Readonly<{ shown: number; more: number }>) {
  const t = useText(inboxTexts);
  return (
    <p role="status" className={styles['foot']}>
      {more === 0 ? t.entriesShown(shown) : t.moreEntries(shown, more)}
    </p>
  );
}
