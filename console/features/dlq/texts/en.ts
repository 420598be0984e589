import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  area: 'Dead letters',
  groups: 'Groups',
  group: 'Group of failures',
  messages: 'Messages',
  message: 'Message',
  topics: 'Topics',
  redrives: 'Redrives',
  newRedrive: 'Plan a redrive',
  redrive: 'Redrive',
  status: 'Status',
  topic: 'Topic',
  error: 'Error',
} as const satisfies Texts;
