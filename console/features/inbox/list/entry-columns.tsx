import { useMemo } from 'react';
import type { Column } from '../../../components/list/column.ts';
import { MaskedText } from '../../../components/protection/masked-text.tsx';
import { useText } from '../../../components/text/use-text.ts';
import { Time } from '../../../components/time/time.tsx';
import { formatCount } from '../../../lib/sizes.ts';
import { EntryBadges, EntryTrend, KindBadge, RankReason } from '../entry-marks.tsx';
import { EntryVerb } from '../entry-verb.tsx';
import { placeText, shortSubject, type Entry } from '../inbox-entry.ts';
import styles from '../inbox.module.css';
import { Owner } from '../owner.tsx';
import { inboxTexts } from '../texts/inbox-texts.ts';

/** Beside a preview, which shows the rest, there is room for fewer. */
export function useEntryColumns(isNarrow: boolean): readonly Column<Entry>[] {
  const t = useText(inboxTexts);
  return useMemo(() => {
    const columns: readonly Column<Entry>[] = [
      {
        id: 'kind',
        title: t.kind,
        width: '124px',
        textOf: ({ kind, state }) => `${kind} ${state}`,
        render: (entry) => <KindBadge kind={entry.kind} />,
      },
      { id: 'what', title: t.what, isPrimary: true, render: (entry) => <What entry={entry} /> },
      {
        id: 'count',
        title: t.count,
        width: '80px',
        isNumber: true,
        textOf: ({ count }) => String(count),
        render: ({ count }) => formatCount(count),
      },
      { id: 'trend', title: t.trend, width: '116px', render: ({ trend }) => <EntryTrend trend={trend} /> },
      {
        id: 'waiting',
        title: t.waiting,
        width: isNarrow ? '104px' : '112px',
        render: (entry) => <Waiting entry={entry} isNarrow={isNarrow} />,
      },
      {
        id: 'owner',
        title: t.owner,
        width: '112px',
        textOf: ({ owner }) => owner?.subject ?? '',
        render: ({ owner }) => <Owner owner={owner} />,
      },
      { id: 'verb', title: t.verb, width: '136px', render: (entry) => <EntryVerb entry={entry} /> },
    ];
    return isNarrow ? columns.filter(({ id }) => id !== 'trend' && id !== 'owner') : columns;
  }, [t, isNarrow]);
}

/** The title, and where; on the row of the cursor also why it stands here. */
function What({ entry }: Readonly<{ entry: Entry }>) {
  const t = useText(inboxTexts);
  return (
    <span className={styles['what']}>
      <span className={styles['title']} title={entry.title}>
        <EntryBadges badges={entry.badges} /> <MaskedText text={entry.title} />
      </span>
      <span className={styles['second']}>
        <span className={styles['place']}>
          <Decided entry={entry} />
          <MaskedText text={placeText(entry)} />
          {entry.notes === 0 ? null : <span className={styles['notes']}>{t.notesOf(entry.notes)}</span>}
        </span>
        <span className={styles['rank']}>
          <span className="visually-hidden">{t.rank}: </span>
          <RankReason entry={entry} />
        </span>
      </span>
    </span>
  );
}

/** Of an entry that is not open any more: what became of it. */
function Decided({ entry: { state, done } }: Readonly<{ entry: Entry }>) {
  const t = useText(inboxTexts);
  if (state === 'open') return null;
  const text =
    state === 'snoozed' ? t.snoozed : done?.by == null ? t.doneItself : t.doneBy(shortSubject(done.by));
  return (
    <span className={styles['decided']}>
      {text}
      {done?.reason == null ? '' : `: ${done.reason}`}
    </span>
  );
}

function Waiting({ entry, isNarrow }: Readonly<{ entry: Entry; isNarrow: boolean }>) {
  const at = entry.oldest_at;
  return (
    <span className={styles['waiting']}>
      <Time at={at} show="age" />
      {isNarrow || at === null ? null : (
        <span className={styles['second']}>
          <Time at={at} show="absolute" />
        </span>
      )}
    </span>
  );
}
