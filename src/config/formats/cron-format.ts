import { Cron } from 'croner';

import { text, type Format } from './format.ts';

/** Minute, hour, day, month, weekday. A schedule that never comes (30 February) is wrong, too. */
export const cronSchedule = (): Format<string> => text('a cron schedule of five fields that comes', comes);

function comes(schedule: string): boolean {
  if (schedule.trim().split(/\s+/).length !== 5) return false;
  try {
    return new Cron(schedule, { mode: '5-part' }).nextRun() !== null;
  } catch {
    return false;
  }
}
