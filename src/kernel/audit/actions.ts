import type { Permission } from '../access/permissions.ts';

/** Acts that no permission is needed for: of the server, of retry policies, of commands on the database, logins, and what concerns only the caller. */
export const ownActions = [
  'access:sessions:login',
  'access:sessions:logout',
  'access:tokens:verify',
  'audit:months:drop',
  'console:views:change',
  'console:views:keep',
  'dlq:policies:disable',
  'dlq:redrives:end',
  'http:requests:deny',
  'system:keys:rewrap',
  'system:keys:rotate',
] as const;

/** What an audit event says was done; of a route that needs no permission, the route. */
export type Action = Permission | (typeof ownActions)[number] | `${string} ${string}`;
