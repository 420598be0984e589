import type { InboxGroup } from '../../kernel/inbox/inbox-group.ts';
import { growthOf } from './entry-state.ts';

/** Why an entry stands where it stands, the most dangerous first. */
export const rankCodes = ['effect_unknown', 'undo_stuck', 'growing', 'old', 'recent'] as const;
export type RankCode = (typeof rankCodes)[number];

export type Rank = Readonly<{
  code: RankCode;
  count: number;
  /** Of its oldest item; null if that is unknown. */
  age_seconds: number | null;
  growth_factor: number | null;
  growth_minutes: number | null;
}>;

/** Items that wait longer than this are old. */
const oldSeconds = 3600;

export function rankOf(
  { danger, arrivals, count, oldestAt }: Pick<InboxGroup, 'danger' | 'arrivals' | 'count' | 'oldestAt'>,
  now: Date,
): Rank {
  const growth = growthOf(arrivals);
  const age = oldestAt === null ? null : Math.max(0, Math.round((now.getTime() - oldestAt.getTime()) / 1000));
  const code = danger ?? (growth !== null ? 'growing' : age !== null && age >= oldSeconds ? 'old' : 'recent');
  return {
    code,
    count,
    age_seconds: age,
    growth_factor: growth?.factor == null ? null : Math.round(growth.factor * 10) / 10,
    growth_minutes: growth?.minutes ?? null,
  };
}

export type Ranked = Readonly<{ rank: Rank; id: string }>;

/** The most dangerous first, then the oldest, then the larger one; the id decides between equals. */
export function compareRanked(one: Ranked, other: Ranked): number {
  return (
    rankCodes.indexOf(one.rank.code) - rankCodes.indexOf(other.rank.code) ||
    (other.rank.age_seconds ?? 0) - (one.rank.age_seconds ?? 0) ||
    other.rank.count - one.rank.count ||
    (one.id < other.id ? -1 : one.id > other.id ? 1 : 0)
  );
}

export function describeRank(rank: Rank): string {
  const { code, count, age_seconds: age, growth_factor: factor, growth_minutes: minutes } = rank;
  const items = count === 1 ? '1 item' : `${count} items`;
  const waiting = age === null ? '' : `, the oldest for ${describeAge(age)}`;
  switch (code) {
    case 'effect_unknown':
      return `the effect of ${items} is unknown${waiting}`;
    case 'undo_stuck':
      return `the undo of ${items} is stuck${waiting}`;
    case 'growing':
      return factor === null
        ? `growing: none was usual, and many in ${minutes} min`
        : `growing ${factor}x in ${minutes} min`;
    case 'old':
    case 'recent':
      return age === null ? `${items} waiting` : `waiting for ${describeAge(age)}`;
  }
}

function describeAge(seconds: number): string {
  if (seconds < 60) return 'less than a minute';
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}
