import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  area: 'Jobs',
  jobs: 'Jobs',
  queues: 'Queues',
  schedules: 'Schedules',
} as const satisfies Texts;
