import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import type { Permission } from '../../../kernel/access/permissions.ts';
import {
  allNamesAllowed,
  isAllowed,
  mayAnywhere,
  mayEverywhere,
  namesAllowed,
  namesAllowedByAny,
  nobody,
  subjectOf,
  type Principal,
} from '../../../kernel/access/principal.ts';
import type { NameFilter, NameFilters, OwnItems } from '../../../kernel/access/scope.ts';
import { AppError } from '../../../kernel/errors.ts';
import type { HttpApp } from '../http-app.ts';
import { endWhenRefused, type Revocations } from './end-when-refused.ts';
import type { DeclaredRoute, NeedsPermission, RouteAccess } from './route-access.ts';

/**
 * Finds out who sent the request. Throws an AppError if it does not say so, or cannot prove it. `isUse` is false where an
 * answer in progress is checked again, which must not keep a session alive.
 */
export type Authenticate = (request: FastifyRequest, isUse: boolean) => Principal | Promise<Principal>;

/**
 * Lets only those through whom the route's declaration admits. A route without one cannot be added, so that a forgotten
 * one stops the start. Runs before the body is read; only the names of the item are looked up after that.
 */
export function guardAccess(
  app: HttpApp,
  authenticate: Authenticate,
  revocations: Revocations,
): readonly DeclaredRoute[] {
  const declared: DeclaredRoute[] = [];
  app.addHook('onRoute', ({ method, url, config }) => {
    const methods = [method].flat();
    const access = config?.access;
    if (access === undefined) throw new Error(`${methods.join()} ${url} does not declare who may call it`);
    declared.push(
      ...methods.filter((one) => one !== 'HEAD').map((one) => ({ method: one, path: url, access })),
    );
  });

  app.decorateRequest('principal');
  app.addHook('onRequest', async (request) => {
    const access = accessOf(request);
    request.principal = nobody;
    if (access === 'public') return;
    request.principal = await authenticate(request, true);
    if (access !== 'authenticated') requirePermission(request.principal, access);
  });
  app.addHook('preHandler', async (request) => {
    const access = accessOf(request);
    if (typeof access === 'object') await requireItem(request, access);
  });
  app.addHook('onSend', async (request, reply, payload) => {
    const { access } = request.routeOptions.config;
    if (access === undefined || access === 'public' || !(payload instanceof Readable)) return;
    const check = async (): Promise<void> => {
      const principal = await authenticate(request, false);
      if (access !== 'authenticated') requirePermission(principal, access);
      // What a stream shows from now on is what the caller may see now.
      request.principal = principal;
    };
    endWhenRefused(payload, { revocations, check, hasBegun: () => reply.raw.headersSent });
  });
  return declared;
}

/** Unknown paths have been answered before; nothing else is without a declaration. */
function accessOf({ routeOptions }: FastifyRequest): RouteAccess {
  const { access } = routeOptions.config;
  assert(access !== undefined, 'the route does not declare who may call it');
  return access;
}

function requirePermission(principal: Principal, { permission, own = [], scope }: NeedsPermission): void {
  if (own.some((one) => mayAnywhere(principal, one))) return;
  if (!mayAnywhere(principal, permission))
    throw permissionDenied(`this needs the permission ${permission}`, permission);
  if (scope === undefined && !mayEverywhere(principal, permission))
    throw permissionDenied(
      `this needs the permission ${permission} in a role that is not narrowed`,
      permission,
    );
}

/** A permission that the route needs only for some requests, besides the one that it declares; perhaps for few items. */
export function requireAlso({ principal }: Pick<FastifyRequest, 'principal'>, permission: Permission): void {
  if (!mayAnywhere(principal, permission))
    throw permissionDenied(`this needs the permission ${permission}`, permission);
}

async function requireItem(
  request: FastifyRequest,
  { permission, own = [], scope }: NeedsPermission,
): Promise<void> {
  if (scope?.in !== 'item' || mayEverywhere(request.principal, permission)) return;
  if (await scope.isCovered?.(request, permission)) return;
  const names = (await scope.namesOf(request)) ?? [];
  if (scope.isCovered === undefined && isAllowed(request.principal, permission, { [scope.by]: names }))
    return;
  const { principal } = request;
  const isCoveredAsOwn = own.some((one) => isAllowed(principal, one, { [scope.by]: names }));
  if (isCoveredAsOwn && (await scope.isOwn?.(request, subjectOf(principal)))) return;
  const what =
    names.length === 0 ? `in a role that is not narrowed` : `for the ${scope.by} ${names.join(', ')}`;
  throw (
    scope.notFound?.(request) ??
    permissionDenied(`this needs the permission ${permission} ${what}`, permission)
  );
}

export function permissionDenied(message: string, permission: Permission): AppError {
  return new AppError('SYS_AUTH_PERMISSION_DENIED', 'forbidden', message, {
    details: [{ field: 'permission', reason: 'permission_denied', message: permission }],
  });
}

/** What a list of the request's route shows; for routes that declare a scope `in: 'list'`. */
export function namesFor({ principal, routeOptions }: FastifyRequest): NameFilter {
  const { access } = routeOptions.config;
  if (typeof access !== 'object' || access.scope === undefined) return null;
  return access.scope.by === 'any' ? [] : namesAllowed(principal, access.permission, access.scope.by);
}

/** The same for routes that declare a list `by: 'any'`. */
export function allNamesFor({ principal, routeOptions }: FastifyRequest): NameFilters {
  const { access } = routeOptions.config;
  assert(typeof access === 'object', 'the route needs a permission');
  return allNamesAllowed(principal, access.permission);
}

/** What a list shows besides the names of `namesFor`; null if nothing. For routes that declare `own`. */
export function ownFor({ principal, routeOptions }: FastifyRequest): OwnItems | null {
  const { access } = routeOptions.config;
  if (typeof access !== 'object' || access.own === undefined || access.scope === undefined) return null;
  if (access.scope.by === 'any' || mayEverywhere(principal, access.permission)) return null;
  const names = namesAllowedByAny(principal, access.own, access.scope.by);
  return names?.length === 0 ? null : { subject: subjectOf(principal), names };
}
