import type { Qualifiers } from '../../lib/filter/qualifiers.ts';

/** What activity can be searched by. What was refused is in the audit log. */
export const activityQualifiers: Qualifiers = {
  qualifiers: [
    { name: 'actor', kind: 'one', parameter: 'actor', facet: 'actor' },
    { name: 'action', kind: 'one', parameter: 'action', facet: 'action' },
    {
      name: 'outcome',
      kind: 'one',
      parameter: 'outcome',
      choices: ['success', 'failure', 'started', 'unknown'],
    },
    { name: 'resource', kind: 'one', parameter: 'resource', facet: 'resource' },
    { name: 'since', kind: 'time', parameter: 'since' },
    { name: 'until', kind: 'time', parameter: 'until' },
    { name: 'operation', kind: 'one', parameter: 'operation' },
  ],
  text: null,
};
