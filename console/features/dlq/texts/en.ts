import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  area: 'Dead letters',
  groups: 'Groups',
  group: 'Group of failures',
  messages: 'Messages',
  topics: 'Topics',
  redrives: 'Redrives',
} as const satisfies Texts;
