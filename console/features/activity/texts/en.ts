import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  area: 'Activity',
} as const satisfies Texts;
