import { Cron } from 'croner';
import { secondMs } from '../../kernel/duration.ts';

/** A job that a schedule adds to a queue. */
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
 * The ticks of a schedule. A tick in the hour that daylight saving time skips in spring comes right after that hour. A
 * tick in the hour that is repeated in autumn comes once if the schedule names an hour and a minute, and twice if it
 * repeats within the hour.
 */
export type Schedule = Readonly<{
  /** The last tick at or before `now`; null if there is none. */
  latest(now: Date): Date | null;
  /** The first tick after `now`; null if there is none. */
  next(now: Date): Date | null;
}>;

export function openSchedule(schedule: string, timeZone: string): Schedule {
  const cron = new Cron(schedule, { mode: '5-part', timezone: timeZone, paused: true });
  return {
    latest(now) {
      // The library compares whole seconds, and returns only runs before the given one.
      const [found] = cron.previousRuns(1, new Date(now.getTime() + secondMs));
      return found ?? null;
    },
    next: (now) => cron.nextRun(now),
  };
}

export type Decision =
  /** The schedule is new: ticks before now do not count. */
  Readonly<{ does: 'start' }> | Readonly<{ does: 'fire'; tickAt: Date }> | Readonly<{ does: 'wait' }>;

/**
 * Of all missed ticks only the latest is fired, and only if it is later than `last`: the tick that was fired last, or
 * the time when the schedule was first seen. So a clock that is set back fires nothing twice.
 */
export function decide(schedule: Schedule, last: Date | null, now: Date): Decision {
  if (last === null) return { does: 'start' };
  const tickAt = schedule.latest(now);
  return tickAt !== null && tickAt > last ? { does: 'fire', tickAt } : { does: 'wait' };
}

/** How long to wait for the next tick of any schedule, at most `mostMs`. */
export function untilNextMs(schedules: readonly Schedule[], now: Date, mostMs: number): number {
  return schedules.reduce((leastMs, schedule) => {
    const next = schedule.next(now);
    return next === null ? leastMs : Math.min(leastMs, next.getTime() - now.getTime());
  }, mostMs);
}
