import { Cron } from 'croner';

import { text, type About } from './value.ts';

/** Minute, hour, day, month, weekday. A schedule that never comes (30 February) is wrong, too. */
export const cronSchedule = (about: About = {}) =>
  text({ what: 'a cron schedule of five fields that comes', isValid: comes, ...about });

function comes(schedule: string): boolean {
  if (schedule.trim().split(/\s+/).length !== 5) return false;
  try {
    return new Cron(schedule, { mode: '5-part' }).nextRun() !== null;
  } catch {
    return false;
  }
}
