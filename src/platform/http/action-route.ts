import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { Act } from '../../kernel/audit/act.ts';
import type { RouteAccess } from './access/route-access.ts';
import { actOf } from './act-of.ts';
import { actorOf } from './actor.ts';
import { IfMatchHeaders, readIfMatch } from './entity-tag.ts';
import type { HttpApp } from './http-app.ts';
import type { NamedErrorStatus } from './openapi/document-parts.ts';

/** Who acts, and why; `act` is for the audit log. */
export type By = Readonly<{ actor: string; reason: string | null; act: Act }>;

/** A route by which a person changes an item. */
export type ActionRoute<Params extends TSchema, Body extends TSchema, Query extends TSchema> = Readonly<{
  method?: 'POST' | 'PATCH' | 'DELETE';
  path: string;
  access: RouteAccess;
  operationId: string;
  summary: string;
  description: string;
  /** Errors that the action can end with. */
  errors: readonly NamedErrorStatus[];
  params: Params;
  body?: Body;
  query?: Query;
  answer: TSchema;
  /** Rejects a body that JSON.parse would change. */
  isExact?: true;
  /** Requires `If-Match`; the answer has the new `ETag`. The slice is named in errors about the header. */
  ifMatch?: string;
  act: (
    action: Readonly<{
      params: Static<Params>;
      body: Static<Body>;
      query: Static<Query>;
      /** The reason is the field `reason` of the body or the query. */
      by: By;
      /** The tags of `If-Match`, if the route requires it. */
      tags: readonly string[];
      request: FastifyRequest;
      reply: FastifyReply;
    }>,
  ) => Promise<object>;
}>;

export function addActionRoute<
  Params extends TSchema,
  Body extends TSchema = TSchema,
  Query extends TSchema = TSchema,
>(app: HttpApp, route: ActionRoute<Params, Body, Query>): void {
  const { method = 'POST', path, access, params, body, query, answer, isExact = false } = route;
  const { operationId, summary, description, ifMatch } = route;
  const errors = ifMatch === undefined ? route.errors : [...route.errors, 412 as const, 428 as const];
  app.route({
    method,
    url: path,
    config: { access, ...(isExact ? { exactJson: true } : {}) },
    schema: {
      operationId,
      summary,
      description,
      errors,
      takesActor: true,
      params,
      ...(ifMatch === undefined ? {} : { headers: IfMatchHeaders, hasEtag: true }),
      ...(query === undefined ? {} : { querystring: query }),
      ...(body === undefined ? {} : { body }),
      response: { 200: answer },
    },
    handler: async (request, reply) => {
      const input = { body: request.body as Static<Body>, query: request.query as Static<Query> };
      const { reason } = { ...(input.query as Reasoned), ...(input.body as Reasoned | null | undefined) };
      const by = byOf(request, reason ?? null);
      const tags = ifMatch === undefined ? [] : readIfMatch(ifMatch, request.headers);
      const given = { ...input, params: request.params as Static<Params> };
      return reply.send(await route.act({ ...given, by, tags, request, reply }));
    },
  });
}

export function byOf(request: FastifyRequest, reason: string | null): By {
  return { actor: actorOf(request), reason, act: actOf(request, reason) };
}

type Reasoned = Readonly<{ reason?: string }>;
