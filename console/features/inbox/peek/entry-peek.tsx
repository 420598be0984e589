import { useQuery } from '@tanstack/react-query';
import { LinkButton } from '../../../components/button/link-button.tsx';
import { Definitions } from '../../../components/definitions/definitions.tsx';
import { useLiveReading } from '../../../components/live/use-live-reading.ts';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { useApi } from '../../../components/session/api-context.ts';
import { LoadedPanel } from '../../../components/states/loaded-panel.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { slices } from '../../../lib/live/live-events.ts';
import { loadedOf } from '../../../lib/loaded.ts';
import { formatCount } from '../../../lib/sizes.ts';
import { EntryBadges, EntryTrend, KindBadge, RankReason } from '../entry-marks.tsx';
import { EntryVerb } from '../entry-verb.tsx';
import { entryPath, entryPlace, placeText, type Entry, type EntryDetails } from '../inbox-entry.ts';
import styles from '../inbox.module.css';
import { Owner } from '../owner.tsx';
import { inboxTexts } from '../texts/inbox-texts.ts';
import type { EntryActions } from '../use-entry-actions.ts';
import { EntryButtons } from './entry-buttons.tsx';
import { EntryNotes, type NoteRequest } from './entry-notes.tsx';
import { EntrySamples } from './entry-samples.tsx';
import { EntryState } from './entry-state.tsx';

type Props = Readonly<{
  id: string;
  actions: EntryActions;
  onFinish: (entry: Entry) => void;
  note: NoteRequest;
}>;

/** One entry beside the list: what it is, the newest items, what people wrote and decided, and what can be done. */
export function EntryPeek({ id, actions, onFinish, note }: Props) {
  const api = useApi();
  const query = useQuery({
    queryKey: ['inbox', 'entry', id],
    queryFn: ({ signal }) => api.get<EntryDetails>(entryPath(id), signal),
    staleTime: 0,
  });
  useLiveReading({ slices, read: () => query.refetch() });
  return (
    <div className={styles['peek']}>
      <LoadedPanel
        loaded={loadedOf(query, () => null)}
        onRetry={() => void query.refetch()}
        renderEmpty={() => null}
      >
        {({ samples, notes_list: notes, ...entry }) => (
          <>
            <EntryHead entry={entry} />
            <EntryState entry={entry} />
            <EntryButtons entry={entry} actions={actions} onFinish={onFinish} />
            <EntryFacts entry={entry} />
            <EntrySamples samples={samples} />
            <EntryNotes entry={entry} notes={notes} request={note} onChange={() => void query.refetch()} />
          </>
        )}
      </LoadedPanel>
    </div>
  );
}

function EntryHead({ entry }: Readonly<{ entry: Entry }>) {
  const t = useText(inboxTexts);
  return (
    <>
      <div className={styles['peekHead']}>
        <KindBadge kind={entry.kind} isFilled />
        <EntryBadges badges={entry.badges} />
      </div>
      <div>
        <h2 className={styles['peekTitle']}>
          <MaskedText text={entry.title} />
        </h2>
        <p className={styles['reason']}>
          <MaskedText text={placeText(entry)} />
        </p>
      </div>
      <div className={styles['actions']}>
        <EntryVerb entry={entry} isPrimary />
        {entry.verb.action === 'open' ? null : <LinkButton {...entryPlace(entry)}>{t.openItems}</LinkButton>}
      </div>
    </>
  );
}

function EntryFacts({ entry }: Readonly<{ entry: Entry }>) {
  const t = useText(inboxTexts);
  return (
    <Definitions
      items={[
        { term: t.count, value: formatCount(entry.count) },
        { term: t.waiting, value: <Time at={entry.oldest_at} /> },
        { term: t.newest, value: <Time at={entry.newest_at} /> },
        { term: t.owner, value: <Owner owner={entry.owner} /> },
        { term: t.rank, value: <RankReason entry={entry} /> },
        { term: t.trend, value: entry.trend === null ? null : <EntryTrend trend={entry.trend} /> },
      ]}
    />
  );
}
