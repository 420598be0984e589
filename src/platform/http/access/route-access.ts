import type { FastifyRequest } from 'fastify';
import type { Permission } from '../../../kernel/access/permissions.ts';
import type { Principal } from '../../../kernel/access/principal.ts';
import type { Dimension } from '../../../kernel/access/scope.ts';
import type { AppError } from '../../../kernel/errors.ts';

/** Who may call a route. Every route declares it. */
export type RouteAccess = 'public' | 'authenticated' | NeedsPermission;

export type NeedsPermission = Readonly<{
  permission: Permission;
  /** How a narrowed role applies. Without it the route needs a role that is not narrowed. */
  scope?: RouteScope;
  /** Whoever has one of these, but not `permission`, sees its own items: those that it created or holds. */
  own?: readonly Permission[];
}>;

/**
 * The handler shows, or selects for what it does, only what `namesFor` and `ownFor` let through. A list `by: 'any'` shows what has
 * names of several dimensions: what `allNamesFor` lets through.
 */
export type ListScope =
  | Readonly<{ by: Dimension; in: 'list' | 'selection' }>
  | Readonly<{ by: 'any'; in: 'list' | 'selection' }>;

/** The request is about items with these names; undefined if there is no such item. */
export type ItemScope = Readonly<{
  by: Dimension;
  in: 'item';
  namesOf: (request: FastifyRequest) => Promise<readonly string[] | undefined>;
  /** Instead of `namesOf`: whether the caller has the permission for the item of the request. */
  isCovered?: (request: FastifyRequest, permission: Permission) => Promise<boolean>;
  /** Whether the item is the caller's own; for routes with `own`. */
  isOwn?: (request: FastifyRequest, subject: string) => Promise<boolean>;
  /** The error of the handler for an item that does not exist; without it the answer is 403. */
  notFound?: (request: FastifyRequest) => AppError;
}>;

export type RouteScope = ListScope | ItemScope;

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: RouteAccess;
  }
  interface FastifyRequest {
    /** Who calls; set before the body is read. */
    principal: Principal;
  }
}

/** A route with what it declares. */
export type DeclaredRoute = Readonly<{ method: string; path: string; access: RouteAccess }>;
