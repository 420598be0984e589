import type { Texts } from '../../../lib/text/catalogue.ts';

export const en = {
  area: 'Sagas',
  sagas: 'Sagas',
  saga: 'Saga',
  workflows: 'Workflows',
  workflow: 'Workflow',
} as const satisfies Texts;
