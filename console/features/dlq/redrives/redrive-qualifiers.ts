import type { Qualifiers } from '../../../lib/filter/qualifiers.ts';

/** What a redrive can select by: the fields of its filter. */
export const redriveQualifiers: Qualifiers = {
  qualifiers: [
    {
      name: 'status',
      kind: 'choice',
      parameter: 'status',
      choices: ['PENDING', 'RETRYING', 'DEAD', 'RESOLVED'],
      facet: 'status',
    },
    { name: 'topic', kind: 'one', parameter: 'topic', facet: 'topic' },
    { name: 'error', kind: 'one', parameter: 'error_class', facet: 'error_class' },
    { name: 'group', kind: 'one', parameter: 'consumer_group', facet: 'consumer_group' },
    { name: 'fingerprint', kind: 'one', parameter: 'fingerprint' },
    { name: 'key', kind: 'one', parameter: 'key' },
    { name: 'since', kind: 'time', parameter: 'since' },
    { name: 'until', kind: 'time', parameter: 'until' },
  ],
  text: { parameter: 'text' },
};
