import type { TextsLike } from '../../lib/text/catalogue.ts';
import type { Entry } from './inbox-entry.ts';
import type { en } from './texts/en.ts';

type Words = Readonly<{
  t: Pick<
    TextsLike<typeof en>,
    'effectUnknown' | 'undoStuck' | 'growingBy' | 'growingFromNone' | 'waitingFor' | 'someWaiting'
  >;
  /** How long ago it was. */
  ageOf: (at: string) => string;
}>;

/** The reason for the place of an entry, in the language of the reader; that of the server for one of a later version. */
export function describeRank(
  { rank, rank_reason: told, oldest_at: oldest }: Pick<Entry, 'rank' | 'rank_reason' | 'oldest_at'>,
  { t, ageOf }: Words,
): string {
  const { code, count, growth_factor: factor, growth_minutes: minutes } = rank;
  const waiting = oldest === null ? '' : ` · ${t.waitingFor(ageOf(oldest))}`;
  switch (code) {
    case 'effect_unknown':
      return t.effectUnknown(count) + waiting;
    case 'undo_stuck':
      return t.undoStuck(count) + waiting;
    case 'growing':
      return factor === null
        ? t.growingFromNone(minutes ?? 0)
        : t.growingBy(factorText(factor), minutes ?? 0);
    case 'old':
    case 'recent':
      return oldest === null ? t.someWaiting(count) : t.waitingFor(ageOf(oldest));
    default:
      return told;
  }
}

/** 2.4, but 8 and 120. */
function factorText(factor: number): string {
  return factor >= 10 ? String(Math.round(factor)) : String(Math.round(factor * 10) / 10);
}
