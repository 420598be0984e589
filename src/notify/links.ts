import type { GroupName } from './grouping.ts';

type Paths = Readonly<{ item: (id: string) => string; list: (subject: string) => string }>;

const redrivePaths: Paths = {
  item: (id) => `/api/v1/dlq/redrives/${id}`,
  list: () => '/api/v1/dlq/redrives',
};

/** Paths of the API that show the items; by slice and kind, else by slice. */
const pathsOf: Readonly<Record<string, Paths>> = {
  dlq: {
    item: (id) => `/api/v1/dlq/messages/${id}`,
    list: (subject) => `/api/v1/dlq/messages?topic=${subject}&status=DEAD`,
  },
  'dlq redrive_finished': redrivePaths,
  'dlq redrive_stopped': redrivePaths,
  'dlq policy_disabled': {
    item: (name) => `/api/v1/dlq/policies/${name}`,
    list: () => '/api/v1/dlq/policies',
  },
  'outbox dead': {
    item: (id) => `/api/v1/outbox/orders/${id}`,
    list: (subject) => `/api/v1/outbox/orders?destination=${subject}&needs_attention=true`,
  },
  outbox: {
    item: (id) => `/api/v1/outbox/orders/${id}`,
    list: (subject) => `/api/v1/outbox/orders?destination=${subject}`,
  },
  jobs: {
    item: (id) => `/api/v1/jobs/${id}`,
    list: (subject) => `/api/v1/jobs/dead?queue=${subject}`,
  },
  saga: {
    item: (id) => `/api/v1/sagas/${id}`,
    list: (subject) => `/api/v1/sagas?workflow_name=${subject}&needs_attention=true`,
  },
};

export type Links = Readonly<{ list: string | null; item: (id: string) => string | null }>;

/** Full URLs if `publicUrl` is configured, else paths. Null for events of unknown slices. */
export function linksOf({ slice, kind, subject }: GroupName, publicUrl: string | undefined): Links {
  const paths = own(`${slice} ${kind}`) ?? own(slice);
  if (paths === undefined) return { list: null, item: () => null };
  const base = (publicUrl ?? '').replace(/\/+$/, '');
  return {
    list: `${base}${paths.list(inUrl(subject))}`,
    item: (id) => `${base}${paths.item(inUrl(id))}`,
  };
}

function own(key: string): Paths | undefined {
  return Object.hasOwn(pathsOf, key) ? pathsOf[key] : undefined;
}

function inUrl(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
