import { Type, type Static, type TSchema } from 'typebox';
import { outcomes } from '../../kernel/audit/act.ts';
import { allNamesFor } from '../../platform/http/access/guard-access.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { addListRoute } from '../../platform/http/list-route.ts';
import { pageParameters, PaginationSchema } from '../../platform/http/page-schema.ts';
import { closed, Instant, nullable, Timestamp, Uuid } from '../../platform/http/schema-parts.ts';
import { readInstantField, readUuidField } from '../../platform/http/slice-input.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { AuditEvent } from '../chain.ts';
import type { CoverEvent } from '../cover-event.ts';
import { exportLines } from './export-lines.ts';
import { listEvents, type EventFilter } from './list-events.ts';

const root = '/api/v1/audit';
const eventBytes = 8192;

const filters = {
  actor: Type.Optional(
    Type.String({ maxLength: 600, description: 'As in `actor_id`: `user:<issuer>|<subject>`, `key:<id>`.' }),
  ),
  action: Type.Optional(Type.String({ maxLength: 100, description: 'The permission.' })),
  outcome: Type.Optional(Type.Enum([...outcomes])),
  resource: Type.Optional(Type.String({ maxLength: 600, description: '`<slice>/<kind>/<name>`.' })),
  operation: Type.Optional(Uuid),
  since: Type.Optional(Instant),
  until: Type.Optional(Instant),
};

const ListQuery = Type.Object({ ...filters, ...pageParameters }, closed);

const names = (what: string) =>
  nullable(Type.Array(Type.String(), { description: `The ${what} that the act was about.` }));

const EventSchema: TSchema = Type.Object(
  {
    seq: Type.Integer({ description: 'Gaps are normal.' }),
    at: Type.String({ examples: ['2026-11-19T12:00:00.123456Z'] }),
    kept: Type.Enum(['usual', 'long'], { description: '400 days, or seven years.' }),
    actor_type: Type.String({ examples: ['user'] }),
    actor_id: Type.String({ examples: ['user:https://idp.example.com/realms/main|7f3c'] }),
    actor_name: Type.String({ examples: ['ada'] }),
    roles: Type.Array(Type.String({ examples: ['sys_operator'] })),
    action: Type.String({ examples: ['dlq:messages:retry'] }),
    outcome: Type.Enum([...outcomes]),
    reason: nullable(Type.String()),
    resource: Type.String({ examples: ['dlq/messages/01a1dfae-c3a5-7000-8007-f35eedc32390'] }),
    topics: names('topics'),
    queues: names('queues'),
    destinations: names('destinations'),
    workflows: names('workflows'),
    operation_id: nullable(Type.String({ format: 'uuid' })),
    item_count: Type.Integer(),
    detail: nullable(Type.Object({}, { additionalProperties: true })),
    request_id: nullable(Type.String()),
    trace_id: nullable(Type.String()),
    address: nullable(Type.String()),
    agent: nullable(Type.String()),
    masked: Type.Optional(
      Type.Literal(true, { description: 'Its reason or its detail is covered in part.' }),
    ),
  },
  { title: 'AuditEvent' },
);

const EventsSchema: TSchema = Type.Object({
  events: Type.Array(EventSchema),
  pagination: PaginationSchema,
});

const ActivitySchema: TSchema = Type.Object({
  items: Type.Array(
    Type.Object(
      {
        seq: Type.Integer({ description: 'Grows with every event; gaps are normal.' }),
        at: Timestamp,
        actor: Type.String({ examples: ['user:https://idp.example.com/realms/main|7f3c'] }),
        actor_name: Type.String({ examples: ['ada'] }),
        action: Type.String({ examples: ['dlq:redrives:start'] }),
        change: nullable(
          Type.String({
            description: 'What exactly was done, where one action stands for several.',
            examples: ['resume'],
          }),
        ),
        resource: Type.String({ examples: ['dlq/messages/01a1dfae-c3a5-7000-8007-f35eedc32390'] }),
        reason: nullable(Type.String()),
        outcome: Type.Enum([...outcomes]),
        operation_id: nullable(Type.String({ format: 'uuid' })),
        item_count: Type.Integer(),
        masked: Type.Optional(Type.Literal(true)),
      },
      { title: 'Activity' },
    ),
  ),
  pagination: PaginationSchema,
});

export type BrowseDeps = Readonly<{ db: Database; cover: CoverEvent }>;

export function addBrowseRoutes(app: HttpApp, { db, cover }: BrowseDeps): void {
  addListRoute(app, {
    slice: 'audit',
    path: root,
    access: { permission: 'audit:events:view', scope: { by: 'any', in: 'list' } },
    operationId: 'listAuditEvents',
    summary: 'List the audit log, newest first',
    description:
      'Who did what, when, why, and with which outcome; also what was refused. A narrowed role sees the events all of whose topics, queues, destinations and workflows are in its scope, and no others. Above 10,000 matching events `total_count` is an estimate.',
    query: ListQuery,
    answer: EventsSchema,
    items: 'events',
    rowBytes: eventBytes,
    cursor: () => ['bigint'],
    keyOf: ({ seq }: AuditEvent) => [String(seq)],
    list: (query, page, request) => listEvents(db, { ...filterOf(query), scope: allNamesFor(request) }, page),
    present: cover,
  });
  addListRoute(app, {
    slice: 'audit',
    path: '/api/v1/activity',
    access: { permission: 'audit:activity:view', scope: { by: 'any', in: 'list' } },
    operationId: 'listActivity',
    summary: 'List what people did, newest first',
    description: 'The audit log without refused requests, addresses and agents, as far as it is in scope.',
    query: ListQuery,
    answer: ActivitySchema,
    items: 'items',
    rowBytes: eventBytes,
    cursor: () => ['bigint'],
    keyOf: ({ seq }: AuditEvent) => [String(seq)],
    list: (query, page, request) =>
      listEvents(db, { ...filterOf(query), scope: allNamesFor(request), withoutDenials: true }, page),
    present: (event) => presentActivity(cover(event)),
  });
  addExportRoute(app, { db, cover });
}

function presentActivity(event: AuditEvent): object {
  const {
    seq,
    at,
    actor_id,
    actor_name,
    action,
    resource,
    reason,
    outcome,
    operation_id,
    item_count,
    masked,
  } = event;
  return {
    seq,
    at,
    actor: actor_id,
    actor_name,
    action,
    change: changeOf(event['detail']),
    resource,
    reason,
    outcome,
    operation_id,
    item_count,
    ...(masked === true ? { masked } : {}),
  };
}

/** Slices name it `change` or `event`. Whatever else somebody wrote there by SQL is no word, and is not shown. */
function changeOf(detail: unknown): string | null {
  const { change, event } = (detail ?? {}) as Readonly<{ change?: unknown; event?: unknown }>;
  const word = change ?? event;
  return typeof word === 'string' && /^[a-z][a-z_]{0,39}$/.test(word) ? word : null;
}

const linesAnswer: object = {
  description: 'Lines of JSON.',
  content: { 'application/x-ndjson': { schema: Type.String({ examples: ['{"type":"seal"}\n'] }) } },
};

function addExportRoute(app: HttpApp, { db, cover }: BrowseDeps): void {
  app.get(
    `${root}/export`,
    {
      config: { access: { permission: 'audit:events:view' } },
      schema: {
        operationId: 'exportAuditEvents',
        summary: 'Export the sealed audit log as lines of JSON',
        description:
          'The events of each round (`type: event`), then its blocks (`type: seal`), so that the chain can be verified without the server. Events of the last seconds are not sealed yet. Events with `masked` have covered parts, so their blocks can be verified only by the server.',
        querystring: Type.Object(
          {
            after_block: Type.Optional(
              Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 }),
            ),
          },
          closed,
        ),
        response: {
          200: linesAnswer,
        },
      },
    },
    async (request, reply) =>
      reply.type('application/x-ndjson').send(exportLines({ db, cover }, request.query.after_block ?? 0)),
  );
}

function filterOf({ since, until, operation, ...query }: Static<typeof ListQuery>): EventFilter {
  return {
    ...query,
    operation: operation === undefined ? undefined : readUuidField('audit', 'operation', operation),
    since: readInstantField('audit', 'since', since),
    until: readInstantField('audit', 'until', until),
  };
}
