import type { Static } from 'typebox';
import type { Permission } from '../../../kernel/access/permissions.ts';
import { requireAlso } from '../../../platform/http/access/guard-access.ts';
import { addActionRoute, byOf } from '../../../platform/http/action-route.ts';
import type { HttpApp } from '../../../platform/http/http-app.ts';
import { invalidField, readInstantField, readUuidField } from '../../../platform/http/slice-input.ts';
import type { RedriveCommand } from '../../domain/redrive.ts';
import type { RedriveKind } from '../../domain/redrive-kind.ts';
import { requireWords } from '../../message-filter.ts';
import { readCanary } from '../canary/canary-schema.ts';
import { commandRedrive } from './command-redrive.ts';
import { createRedrive, type CreateDeps } from './create-redrive.ts';
import { patchRedrive } from './patch-redrive.ts';
import {
  addRedriveReadRoutes,
  readId,
  redrivesRoot as root,
  showRedrive,
  type ReadRouteDeps,
} from './read-routes.ts';
import * as schemas from './redrive-schemas.ts';
import type { RedriveFilter, RedriveOptions } from './redrives-table.ts';

export type RedriveRouteDeps = CreateDeps & ReadRouteDeps & Readonly<{ hasBroker: boolean }>;

export function addRedrivePlanRoutes(app: HttpApp, deps: RedriveRouteDeps): void {
  addCreateRoute(app, deps);
  addRedriveReadRoutes(app, deps);
  addPatchRoute(app, deps);
  for (const one of commands) addCommandRoute(app, deps, one);
}

function addCreateRoute(app: HttpApp, deps: RedriveRouteDeps): void {
  app.post(
    root,
    {
      config: { access: { permission: 'dlq:redrives:plan' }, heavy: true },
      schema: {
        operationId: 'planRedrive',
        summary: 'Plan a redrive of the messages that match a filter',
        description:
          'Retries them, or reopens, ends or deletes them all (`kind`). Answers at once; the plan is made in the background, and nothing is done before it is started. Messages that arrive or change later are not touched. At most a million messages.',
        errors: [422, 429],
        takesActor: true,
        body: schemas.NewRedriveBody,
        response: { 202: schemas.CreatedSchema },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const { kind = 'retry', reason } = body;
      const needed = neededFor(kind, body);
      if (needed !== null) requireAlso(request, needed);
      const id = await createRedrive(deps, {
        kind,
        filter: readFilter(body.filter),
        options: readOptions(kind, body, deps),
        ...byOf(request, reason),
        reason,
      });
      return reply.status(202).send({ id, state: 'planning' });
    },
  );
}

/** Whoever may not decide about one message may not plan that decision for many. */
function neededFor(
  kind: RedriveKind,
  { reopen = false }: Static<typeof schemas.NewRedriveBody>,
): Permission | null {
  switch (kind) {
    case 'retry':
      return reopen ? 'dlq:messages:reopen' : null;
    case 'reopen':
      return 'dlq:messages:reopen';
    case 'dead':
      return 'dlq:messages:mark-dead';
    case 'delete':
      return 'dlq:messages:delete';
  }
}

/** A bulk decision sends nothing: what says how to send must not be ignored. */
function readOptions(
  kind: RedriveKind,
  body: Static<typeof schemas.NewRedriveBody>,
  deps: RedriveRouteDeps,
): RedriveOptions {
  const { rate_per_second = null, order = 'key', reopen = false } = body;
  if (kind === 'retry') return { rate_per_second, order, reopen, canary: readCanary(body.canary, deps) };
  for (const field of ['order', 'reopen', 'canary'] as const)
    if (body[field] !== undefined)
      throw invalidField('dlq', field, 'kind', `applies to the kind retry only, not to ${kind}`);
  return { rate_per_second, order: 'none', reopen: false };
}

function readFilter(sent: Static<typeof schemas.FilterSchema>): RedriveFilter {
  const { since, until, ids, ...rest } = sent;
  if (rest.text !== undefined) requireWords('filter.text', rest.text);
  const instant = (field: string, text: string | undefined): string | undefined =>
    readInstantField('dlq', field, text)?.toISOString();
  const from = instant('filter.since', since);
  const to = instant('filter.until', until);
  return {
    ...rest,
    ...(from === undefined ? {} : { since: from }),
    ...(to === undefined ? {} : { until: to }),
    ...(ids === undefined
      ? {}
      : { ids: [...new Set(ids.map((id) => readUuidField('dlq', 'filter.ids', id)))] }),
  };
}

type CommandRoute = Readonly<{
  command: RedriveCommand;
  permission: Permission;
  summary: string;
  description: string;
}>;

const commands: readonly CommandRoute[] = [
  {
    command: 'start',
    permission: 'dlq:redrives:start',
    summary: 'Start a planned redrive',
    description: 'Publishes the messages of the plan, in its order.',
  },
  {
    command: 'pause',
    permission: 'dlq:redrives:pause',
    summary: 'Pause a running redrive',
    description: 'After the answer no further message is claimed; those in flight are settled.',
  },
  {
    command: 'resume',
    permission: 'dlq:redrives:start',
    summary: 'Resume a paused or stopped redrive',
    description: 'Continues with the messages that have no outcome yet.',
  },
  {
    command: 'cancel',
    permission: 'dlq:redrives:cancel',
    summary: 'Cancel a redrive',
    description:
      'After the answer no further message is claimed. Those that wait end as cancelled; those in flight are settled.',
  },
];

function addPatchRoute(app: HttpApp, deps: RedriveRouteDeps): void {
  addActionRoute(app, {
    method: 'PATCH',
    path: `${root}/:id`,
    access: { permission: 'dlq:redrives:start' },
    operationId: 'patchRedrive',
    summary: 'Change the rate or the canary of a redrive',
    description:
      'A new rate is effective within a second, also on a running redrive. The canary can be changed only before the start.',
    errors: [404, 409, 422],
    ifMatch: 'dlq',
    params: schemas.RedriveParams,
    body: schemas.RedrivePatchBody,
    answer: schemas.RedriveSchema,
    async act({ params, body: { rate_per_second, canary }, by, tags, reply }) {
      const id = readId(params.id);
      const options = {
        ...(rate_per_second === undefined ? {} : { rate_per_second }),
        ...(canary === undefined ? {} : { canary: readCanary(canary, deps) }),
      };
      if (Object.keys(options).length === 0)
        throw invalidField('dlq', 'rate_per_second', 'required', 'or canary must be sent');
      await patchRedrive(deps.db, { id, tags, options, ...by });
      return showRedrive(deps, id, reply);
    },
  });
}

function addCommandRoute(
  app: HttpApp,
  deps: CreateDeps,
  { command, permission, summary, description }: CommandRoute,
): void {
  addActionRoute(app, {
    path: `${root}/:id/${command}`,
    access: { permission },
    operationId: `${command}Redrive`,
    summary,
    description,
    errors: [404, 409],
    params: schemas.RedriveParams,
    body: schemas.CommandBody,
    answer: schemas.RedriveSchema,
    async act({ params, by }) {
      const id = readId(params.id);
      await commandRedrive(deps.db, { id, command, ...by });
      return showRedrive(deps, id);
    },
  });
}
