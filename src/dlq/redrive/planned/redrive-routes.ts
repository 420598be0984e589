import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { requireAlso } from '../../../platform/http/access/guard-access.ts';
import type { PayloadMasks } from '../../../platform/http/access/payload-masks.ts';
import { addActionRoute, byOf } from '../../../platform/http/action-route.ts';
import type { HttpApp } from '../../../platform/http/http-app.ts';
import { invalidField, readInstantField, readUuidField } from '../../../platform/http/slice-input.ts';
import type { RedriveKind } from '../../domain/redrive-kind.ts';
import { requireWords } from '../../message-filter.ts';
import { readCanary } from '../canary/canary-schema.ts';
import { createRedrive, type CreateDeps } from './create-redrive.ts';
import { patchRedrive } from './patch-redrive.ts';
import {
  addRedriveReadRoutes,
  redrivesRoot as root,
  showRedrive,
  type ReadRouteDeps,
} from './read-routes.ts';
import * as schemas from './redrive-schemas.ts';
import { addCommandRoutes, type CommandRouteDeps } from './access/command-routes.ts';
import { neededFor, topicsFor } from './access/redrive-rights.ts';
import { readId, redriveScope } from './access/redrive-scope.ts';
import type { RedriveFilter, RedriveOptions } from './redrives-table.ts';

export type RedriveRouteDeps = CreateDeps &
  CommandRouteDeps &
  ReadRouteDeps &
  Readonly<{ hasBroker: boolean }>;

export function addRedrivePlanRoutes(app: HttpApp, deps: RedriveRouteDeps): void {
  addCreateRoute(app, deps);
  addRedriveReadRoutes(app, deps);
  addPatchRoute(app, deps);
  addCommandRoutes(app, deps, (id) => showRedrive(deps, id));
}

function addCreateRoute(app: HttpApp, deps: RedriveRouteDeps): void {
  app.post(
    root,
    {
      config: {
        access: { permission: 'dlq:redrives:plan', scope: { by: 'topics', in: 'selection' } },
        heavy: true,
      },
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
      const needed = neededFor(kind, { reopen: body.reopen ?? false });
      if (needed !== null) requireAlso(request, needed);
      requireFilter(deps.masking, body.filter, request);
      const options = readOptions(kind, body, deps);
      await deps.rights.keep(request.principal);
      const id = await createRedrive(deps, {
        kind,
        filter: readFilter(body.filter),
        options,
        scopes: topicsFor(request.principal, 'dlq:redrives:plan', { kind, options }),
        ...byOf(request, reason),
        reason,
      });
      return reply.status(202).send({ id, state: 'planning' });
    },
  );
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

/** Which messages a filter finds says whether a guess of what is covered is right. */
function requireFilter(
  masking: PayloadMasks,
  { text, key, error_class: errorClass }: Static<typeof schemas.FilterSchema>,
  request: FastifyRequest,
): void {
  if (text !== undefined) masking.requirePayloads(request, 'text');
  if (key !== undefined && masking.ofAny().protectsKeys) masking.requirePayloads(request, 'key');
  masking.requireVisible(request, 'error_class', errorClass, 'text');
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

function addPatchRoute(app: HttpApp, deps: RedriveRouteDeps): void {
  addActionRoute(app, {
    method: 'PATCH',
    path: `${root}/:id`,
    access: { permission: 'dlq:redrives:start', scope: redriveScope(deps.db) },
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
