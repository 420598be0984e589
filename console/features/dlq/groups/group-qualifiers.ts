import type { Qualifiers } from '../../../lib/filter/qualifiers.ts';

/** What groups are counted by, and so what they can be filtered by. */
export const groupQualifiers: Qualifiers = {
  qualifiers: [
    { name: 'status', kind: 'one', parameter: 'status', facet: 'status' },
    { name: 'topic', kind: 'one', parameter: 'topic', facet: 'topic' },
    { name: 'group', kind: 'one', parameter: 'consumer_group', facet: 'consumer_group' },
    { name: 'error', kind: 'one', parameter: 'error_class', facet: 'error_class' },
    { name: 'fingerprint', kind: 'one', parameter: 'fingerprint' },
  ],
  text: null,
};
