import type { Texts } from '../../../../lib/text/catalogue.ts';

export const en = {
  schedules: 'Schedules',
  listCaption: 'Schedules by name',
  noSchedules: 'No schedules are configured',
  noSchedulesHint: 'A schedule adds a job to a queue at the times of a cron expression:',
  name: 'Name',
  schedule: 'Schedule',
  zone: 'Time zone',
  queue: 'Queue',
  next: 'Next',
  never: 'never',
  notSeen: 'No worker has seen it: it does not run',
  due: 'Due, and not fired since',
  last: 'Last',
  neverRan: 'not yet',
  lastJob: 'Its job',
  jobGone: 'deleted',
} as const satisfies Texts;
