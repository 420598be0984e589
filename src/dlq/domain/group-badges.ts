/** What a group did in one hour, by the clock of the database; the hour under way has age 0. */
export type GroupHour = Readonly<{
  age: number;
  /** Failures that arrived. */
  arrived: number;
  /** By how many the messages that are PENDING or RETRYING became more. */
  opened: number;
}>;

export type Badge = 'new' | 'back' | 'growing';

/** A day has its own rhythm; a shorter trend would call each morning a growth. */
export const trendHours = 24;
const growingFrom = 10;

/** Failures per hour, oldest first; the last one is the hour under way. */
export function trendOf(hours: readonly GroupHour[]): readonly number[] {
  const trend = Array.from({ length: trendHours }, () => 0);
  for (const { age, arrived } of hours) {
    const index = trendHours - 1 - age;
    if (index in trend) trend[index] = (trend[index] ?? 0) + arrived;
  }
  return trend;
}

/**
 * `new`: first seen within an hour. `back`: a whole hour of the last day passed without an open message, now there is
 * one, and the group is older than that hour. `growing`: at least 10 failures in the hour under way or the one before,
 * and twice the mean of the hours before it.
 */
export function badgesOf(
  group: Readonly<{ hours: readonly GroupHour[]; open: number; firstSeenHoursAgo: number }>,
): readonly Badge[] {
  const badges: Badge[] = [];
  if (group.firstSeenHoursAgo <= 1) badges.push('new');
  else if (group.open > 0 && quietHour(group) + 1 < group.firstSeenHoursAgo) badges.push('back');
  if (isGrowing(trendOf(group.hours))) badges.push('growing');
  return badges;
}

/** The age of the latest hour with no open message and no failure; infinite if there was none in the last day. */
function quietHour({ hours, open }: Readonly<{ hours: readonly GroupHour[]; open: number }>): number {
  let atEnd = open;
  for (let age = 0; age < trendHours; age += 1) {
    const inHour = hours.filter((hour) => hour.age === age);
    const atStart = atEnd - sum(inHour.map(({ opened }) => opened));
    if (atStart === 0 && atEnd === 0 && inHour.every(({ arrived }) => arrived === 0)) return age;
    atEnd = atStart;
  }
  return Number.POSITIVE_INFINITY;
}

function isGrowing(trend: readonly number[]): boolean {
  return [trend.length - 1, trend.length - 2].some((last) => {
    const before = trend.slice(0, last);
    const count = trend[last] ?? 0;
    return count >= growingFrom && count >= 2 * (sum(before) / before.length);
  });
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
