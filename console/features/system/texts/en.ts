import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  area: 'System',
} as const satisfies Texts;
