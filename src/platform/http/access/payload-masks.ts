import type { FastifyRequest } from 'fastify';
import type { Permission } from '../../../kernel/access/permissions.ts';
import { isAllowed, mayEverywhere, namesAllowed } from '../../../kernel/access/principal.ts';
import type { Dimension } from '../../../kernel/access/scope.ts';
import type { Masks, Protection } from '../../../kernel/protect/protection.ts';
import { permissionDenied } from './guard-access.ts';
import { createRevealLimit, type RevealLimit } from './reveal-limit.ts';

type Asking = Pick<FastifyRequest, 'principal'>;

/** How the payloads of one slice are shown to whoever asks. */
export type PayloadMasks = Readonly<{
  /**
   * For an item. The first name decides whether the principal may see its payload at all; the rules are those for any
   * of the names.
   */
  of: (request: Asking, name: string, ...otherNames: readonly (string | null)[]) => Masks;
  /** For texts that were made of many items, or of one that may be gone. */
  ofAny: () => Masks;
  /** Refuses whoever may not see the payload of an item with this name. */
  requirePayload: (request: Asking, name: string, what: string) => void;
  /** For a search by what payloads say: refuses it to those who do not see all payloads that it looks into. */
  requirePayloads: (request: FastifyRequest, what: string) => void;
  /** Throws when the caller has revealed too much within the last minute. */
  limitReveals: RevealLimit;
}>;

export type MaskPayloads = (dimension: Dimension, permission: Permission) => PayloadMasks;

export function maskPayloadsBy(
  protection: Protection,
  limitReveals: RevealLimit = createRevealLimit(),
): MaskPayloads {
  return (dimension, permission) => ({
    of({ principal }, name, ...otherNames) {
      const masks = protection.of(dimension, [name, ...otherNames]);
      return isAllowed(principal, permission, { [dimension]: [name] }) ? masks : masks.withoutPayload();
    },
    ofAny: () => protection.ofAny(dimension),
    limitReveals,
    requirePayload({ principal }, name, what) {
      if (!isAllowed(principal, permission, { [dimension]: [name] }))
        throw permissionDenied(`${what} needs the permission ${permission}`, permission);
    },
    requirePayloads(request, what) {
      const { principal } = request;
      if (mayEverywhere(principal, permission)) return;
      const { access } = request.routeOptions.config;
      const namesOf = (needed: Permission): string =>
        JSON.stringify(namesAllowed(principal, needed, dimension));
      if (typeof access === 'object' && namesOf(permission) === namesOf(access.permission)) return;
      throw permissionDenied(
        `${what} looks into payloads: this needs the permission ${permission}`,
        permission,
      );
    },
  });
}
