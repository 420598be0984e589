import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  area: 'Inbox',
} as const satisfies Texts;
