import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  area: 'Dead letters',
  messages: 'Messages',
  status: 'Status',
  topic: 'Topic',
  error: 'Error',
} as const satisfies Texts;
