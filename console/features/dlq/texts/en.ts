import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  area: 'Dead letters',
  groups: 'Groups',
  group: 'Group of failures',
  messages: 'Messages',
  edit: 'Edit',
  message: 'Message',
  topics: 'Topics',
  redrives: 'Redrives',
  newRedrive: 'Plan a redrive',
  redrive: 'Redrive',
} as const satisfies Texts;
