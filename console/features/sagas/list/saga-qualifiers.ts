import type { Qualifiers } from '../../../lib/filter/qualifiers.ts';

const statuses = ['STARTED', 'RUNNING', 'COMPENSATING', 'COMPLETED', 'FAILED', 'CANCELLED'];

/** What sagas can be searched by. */
export const sagaQualifiers: Qualifiers = {
  qualifiers: [
    { name: 'workflow', kind: 'one', parameter: 'workflow_name', facet: 'workflow_name' },
    { name: 'status', kind: 'choice', parameter: 'status', choices: statuses, facet: 'status' },
    { name: 'is', kind: 'flag', parameter: ['needs_attention'], choices: ['stuck'] },
    { name: 'step', kind: 'one', parameter: 'step', facet: 'step' },
    { name: 'key', kind: 'one', parameter: 'key' },
    { name: 'correlation', kind: 'one', parameter: 'correlation_id' },
    { name: 'service', kind: 'one', parameter: 'waiting_for', facet: 'waiting_for' },
    { name: 'fingerprint', kind: 'one', parameter: 'fingerprint' },
    { name: 'definition', kind: 'one', parameter: 'definition_hash' },
    { name: 'since', kind: 'time', parameter: 'since' },
    { name: 'until', kind: 'time', parameter: 'until' },
  ],
  text: null,
};
