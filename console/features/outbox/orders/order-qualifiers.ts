import type { Qualifiers } from '../../../lib/filter/qualifiers.ts';

const statuses = ['queued', 'sending', 'failed', 'dead', 'sent'];

/** What orders can be searched by. */
export const orderQualifiers: Qualifiers = {
  qualifiers: [
    { name: 'status', kind: 'choice', parameter: 'status', choices: statuses, facet: 'status' },
    { name: 'destination', kind: 'one', parameter: 'destination', facet: 'destination' },
    { name: 'error', kind: 'one', parameter: 'error_code', facet: 'error_code' },
    { name: 'lane', kind: 'one', parameter: 'ordering_key' },
    { name: 'key', kind: 'one', parameter: 'idempotency_key' },
    { name: 'fingerprint', kind: 'one', parameter: 'fingerprint', facet: 'fingerprint' },
    { name: 'since', kind: 'time', parameter: 'created_from' },
    { name: 'until', kind: 'time', parameter: 'created_to' },
    {
      name: 'is',
      kind: 'flag',
      parameter: ['needs_attention', 'in_doubt', 'held'],
      choices: ['unresolved', 'in_doubt', 'blocked'],
    },
  ],
  text: null,
};
