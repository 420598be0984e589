import { useContext, useSyncExternalStore } from 'react';
import { Sparkbars } from '../../components/charts/sparkbars.tsx';
import { kitTexts } from '../../components/kit-texts/kit-texts.ts';
import { usePreferences } from '../../components/preferences/preferences.tsx';
import { StatusBadge } from '../../components/status/status-badge.tsx';
import { useText } from '../../components/text/use-text.ts';
import { ClockContext } from '../../components/time/clock.ts';
import { formatDuration } from '../../lib/times.ts';
import { describeRank } from './describe-rank.ts';
import { kindLooks, type Entry } from './inbox-entry.ts';
import styles from './inbox.module.css';
import { inboxTexts } from './texts/inbox-texts.ts';

/** What kind of trouble it is: a shape and a word. */
export function KindBadge({ kind, isFilled = false }: Readonly<{ kind: Entry['kind']; isFilled?: boolean }>) {
  const t = useText(inboxTexts);
  return <StatusBadge {...kindLooks[kind]} status={t[kind]} isFilled={isFilled} />;
}

export function EntryBadges({ badges }: Pick<Entry, 'badges'>) {
  const t = useText(inboxTexts);
  const hints = { new: t.newHint, back: t.backHint, growing: t.growingHint } as const;
  return badges.map((badge) => (
    <span key={badge} className={styles['badge']} data-badge={badge} title={hints[badge]}>
      {t[badge]}
    </span>
  ));
}

/** Arrivals per hour, with the same in words. */
export function EntryTrend({ trend }: Pick<Entry, 'trend'>) {
  const t = useText(inboxTexts);
  const kit = useText(kitTexts);
  if (trend === null)
    return (
      <span title={t.noTrend}>
        <span aria-hidden>–</span>
        <span className="visually-hidden">{t.noTrend}</span>
      </span>
    );
  const sum = trend.reduce((all, one) => all + one, 0);
  return <Sparkbars values={trend} label={kit.lastHours(sum, Math.max(0, ...trend))} />;
}

/** Why an entry stands where it stands; the age in it goes on. */
export function RankReason({ entry }: Readonly<{ entry: Entry }>) {
  const t = useText(inboxTexts);
  const [{ language }] = usePreferences();
  const clock = useContext(ClockContext);
  return useSyncExternalStore(clock.subscribe, () =>
    describeRank(entry, {
      t,
      ageOf: (at) => formatDuration(clock.now() - Date.parse(at), language),
    }),
  );
}
