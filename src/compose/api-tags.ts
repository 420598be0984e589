import type { ApiTag } from '../platform/http/openapi/openapi.ts';

/** What the API description says about each slice. */
export const apiTags: readonly ApiTag[] = [
  { name: 'dlq', description: 'Dead letters: inspect, retry or give up on messages of dead-letter topics.' },
  {
    name: 'outbox',
    description: 'Outbound requests (orders): add them, follow them, decide about dead ones.',
  },
  {
    name: 'jobs',
    description: 'Jobs: add them, run them in workers of any language, decide about dead ones.',
  },
  { name: 'saga', description: 'Sagas: register workflows, start sagas, decide about stuck steps.' },
  { name: 'audit', description: 'The audit log: who did what, and its verification.' },
  {
    name: 'console',
    description: 'The web console: the inbox, saved views, changes, the state of the system.',
  },
  { name: 'access', description: 'Who calls, and API keys.' },
];
