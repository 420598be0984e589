import type { Qualifiers } from '../../../lib/filter/qualifiers.ts';

const statuses = ['PENDING', 'RETRYING', 'DEAD', 'RESOLVED'];

/** What messages can be searched by. */
export const messageQualifiers: Qualifiers = {
  qualifiers: [
    {
      name: 'status',
      kind: 'choice',
      parameter: 'status',
      excludedParameter: 'not_status',
      choices: statuses,
      facet: 'status',
    },
    { name: 'topic', kind: 'one', parameter: 'topic', excludedParameter: 'not_topic', facet: 'topic' },
    {
      name: 'error',
      kind: 'one',
      parameter: 'error_class',
      excludedParameter: 'not_error_class',
      facet: 'error_class',
    },
    {
      name: 'group',
      kind: 'one',
      parameter: 'consumer_group',
      excludedParameter: 'not_consumer_group',
      facet: 'consumer_group',
    },
    { name: 'key', kind: 'one', parameter: 'key', excludedParameter: 'not_key' },
    {
      name: 'fingerprint',
      kind: 'one',
      parameter: 'fingerprint',
      excludedParameter: 'not_fingerprint',
      facet: 'fingerprint',
    },
    { name: 'since', kind: 'time', parameter: 'since' },
    { name: 'until', kind: 'time', parameter: 'until' },
    {
      name: 'is',
      kind: 'flag',
      parameter: ['has_edit', 'unroutable', 'archived'],
      choices: ['edited', 'unroutable', 'archived'],
    },
  ],
  text: { parameter: 'text', excludedParameter: 'not_text' },
};
