import { ListTable } from '../../../components/list/list-table.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { entryPlace, type Entry } from '../inbox-entry.ts';
import styles from '../inbox.module.css';
import { inboxTexts } from '../texts/inbox-texts.ts';
import { useEntryColumns } from './entry-columns.tsx';
import type { InboxHandle } from './use-inbox.ts';
import { useRowKeys } from './use-row-keys.ts';

type TableProps = Readonly<{
  entries: readonly Entry[];
  inbox: InboxHandle;
  isRefreshing: boolean;
}>;

/** The entries with their keys. */
export function EntriesTable({ entries, inbox, isRefreshing }: TableProps) {
  const t = useText(inboxTexts);
  const columns = useEntryColumns();
  const rowKeys = useRowKeys();
  const more = inbox.facts?.more ?? 0;
  return (
    <div className={styles['list']}>
      <ListTable
        caption={t.caption}
        rows={entries}
        idOf={({ id }) => id}
        nameOf={({ title }) => title}
        linkOf={entryPlace}
        columns={columns}
        live={inbox.live}
        isRefreshing={isRefreshing}
        initialCursor=""
        rowKeys={rowKeys}
      />
      <p role="status" className={styles['foot']}>
        {more === 0 ? t.entriesShown(entries.length) : t.moreEntries(entries.length, more)}
      </p>
    </div>
  );
}
