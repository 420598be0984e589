import type { Qualifiers } from '../../lib/filter/qualifiers.ts';

const kinds = [
  'messages',
  'unroutable',
  'orders',
  'held_key',
  'in_doubt',
  'jobs',
  'sagas',
  'redrive',
  'circuit',
  'ingest',
  'accounting',
];

/** What entries can be filtered by. Without `is` the open ones are listed. */
export const inboxQualifiers: Qualifiers = {
  qualifiers: [
    { name: 'is', kind: 'one', parameter: 'state', choices: ['open', 'snoozed', 'done'] },
    { name: 'kind', kind: 'one', parameter: 'kind', choices: kinds, facet: 'kind' },
    {
      name: 'slice',
      kind: 'one',
      parameter: 'slice',
      choices: ['dlq', 'outbox', 'jobs', 'saga', 'system'],
      facet: 'slice',
    },
    { name: 'assignee', kind: 'one', parameter: 'assignee', facet: 'assignee' },
  ],
  text: { parameter: 'text' },
};
