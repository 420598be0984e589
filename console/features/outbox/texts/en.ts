import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  area: 'Outbox',
  orders: 'Orders',
  destinations: 'Destinations',
  ledger: 'Ledger',
} as const satisfies Texts;
