import type { RowLink } from '../../../components/list/column.ts';
import { printTerm } from '../../../lib/filter/filter.ts';

/** What an act was about. */
export type ActObject = Readonly<{
  kind: ObjectKind;
  /** An id or a name; empty if the act was about many. */
  name: string;
  /** Its page; without one, what else was done to it. */
  link: RowLink;
}>;

const kinds = {
  'dlq/messages': 'message',
  'dlq/redrives': 'redrive',
  'dlq/topics': 'topic',
  'dlq/sources': 'source',
  'dlq/policies': 'policy',
  'dlq/erasures': 'erasure',
  'outbox/orders': 'order',
  'jobs/jobs': 'job',
  'jobs/queues': 'queue',
  'saga/sagas': 'saga',
  'saga/workflows': 'workflow',
  'access/keys': 'apiKey',
  'access/sessions': 'session',
  'audit/months': 'auditMonth',
  'platform/data_keys': 'dataKey',
} as const;

export type ObjectKind = (typeof kinds)[keyof typeof kinds] | 'other';

/** `dlq/messages/<id>` and so on: the slice, the kind, and a name that may contain slashes. */
export function describeObject(resource: string): ActObject {
  const [slice = '', of = ''] = resource.split('/', 2);
  const known = `${slice}/${of}`;
  const kind = Object.hasOwn(kinds, known) ? kinds[known as keyof typeof kinds] : 'other';
  const name = kind === 'other' ? resource : resource.slice(known.length + 1);
  return { kind, name, link: (name === '' ? undefined : pages[kind]?.(name)) ?? actsOn(resource) };
}

/** Of each kind that has one, the way to its page. */
const pages: Readonly<Partial<Record<ObjectKind, (name: string) => RowLink>>> = {
  message: (name) => ({ to: `/dlq/messages/${encodeURIComponent(name)}` }),
  redrive: (name) => ({ to: `/dlq/redrives/${encodeURIComponent(name)}` }),
  topic: (name) => ({ to: '/dlq/topics', search: { topic: name } }),
  source: () => ({ to: '/dlq/topics' }),
  policy: () => ({ to: '/dlq/topics' }),
  order: (name) => ({ to: `/outbox/orders/${encodeURIComponent(name)}` }),
  job: (name) => ({ to: `/jobs/list/${encodeURIComponent(name)}` }),
  queue: () => ({ to: '/jobs/queues' }),
  saga: (name) => ({ to: `/sagas/${encodeURIComponent(name)}` }),
  workflow: (name) => ({ to: `/sagas/workflows/${encodeURIComponent(name)}` }),
};

function actsOn(resource: string): RowLink {
  return {
    to: '/activity',
    search: { q: printTerm({ qualifier: 'resource', value: resource, isExcluded: false }) },
  };
}
