import { Cron } from 'croner';

/** A job that a schedule adds to a queue, under a name of the user's own. */
export type CronJob = Readonly<{
  name: string;
  /** Minute, hour, day, month, weekday. */
  schedule: string;
  timeZone: string;
  queue: string;
  payload: unknown;
  priority: number;
  maxRetries: number | null;
}>;

/**
 * When a schedule comes. A time that the clocks of the zone leave out in spring comes when they have gone forward; one
 * that they show twice in autumn comes once where the schedule names an hour and a minute, and both times where it
 * comes again and again.
 */
export type Schedule = Readonly<{
  /** The last time that it came, at `now` at the latest; null if it never has. */
  latest(now: Date): Date | null;
  /** The first time after `now`; null if there is none. */
  next(now: Date): Date | null;
}>;

const secondMs = 1000;

export function openSchedule(schedule: string, timeZone: string): Schedule {
  const cron = new Cron(schedule, { mode: '5-part', timezone: timeZone, paused: true });
  return {
    latest(now) {
      // It looks at whole seconds, and only before the one that it is given.
      const [found] = cron.previousRuns(1, new Date(now.getTime() + secondMs));
      return found ?? null;
    },
    next: (now) => cron.nextRun(now),
  };
}

export type Decision =
  /** Nobody knew of the schedule: from now on it is known, and what came before does not count. */
  Readonly<{ does: 'begin' }> | Readonly<{ does: 'fire'; tickAt: Date }> | Readonly<{ does: 'wait' }>;

/**
 * Of everything that was missed only the latest time counts, and none that is not later than `last`: the time that
 * was fired last, or when the schedule was first known. So a clock that is put back fires nothing twice.
 */
export function decide(schedule: Schedule, last: Date | null, now: Date): Decision {
  if (last === null) return { does: 'begin' };
  const tickAt = schedule.latest(now);
  return tickAt !== null && tickAt > last ? { does: 'fire', tickAt } : { does: 'wait' };
}

/** How long to wait until one of the schedules comes, `mostMs` at most. */
export function untilNextMs(schedules: readonly Schedule[], now: Date, mostMs: number): number {
  return schedules.reduce((leastMs, schedule) => {
    const next = schedule.next(now);
    return next === null ? leastMs : Math.min(leastMs, next.getTime() - now.getTime());
  }, mostMs);
}
