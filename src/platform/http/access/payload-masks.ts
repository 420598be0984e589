import type { FastifyRequest } from 'fastify';
import type { Permission } from '../../../kernel/access/permissions.ts';
import {
  creatorOf,
  isAllowed,
  mayAnywhere,
  mayEverywhere,
  namesAllowed,
} from '../../../kernel/access/principal.ts';
import type { Dimension } from '../../../kernel/access/scope.ts';
import type { Masks, Protection } from '../../../kernel/protect/protection.ts';
import { permissionDenied } from './guard-access.ts';
import { createRevealLimit, type RevealLimit } from './reveal-limit.ts';

type Asking = Pick<FastifyRequest, 'principal'>;

/** How the payloads of one slice are shown to the caller. */
export type PayloadMasks = Readonly<{
  /**
   * For an item. The first name decides whether the principal may see its payload at all; the rules are those for any
   * of the names.
   */
  of: (request: Asking, name: string, ...otherNames: readonly (string | null)[]) => Masks;
  /** The same for an item that somebody added: who added it knows the payload, and sees it as the rules say. */
  ofAdded: (request: Asking, name: string, createdBy: string | null) => Masks;
  /** For texts that were made of many items, or of one that may be gone. */
  ofAny: () => Masks;
  /** The memory that an answer of this size may take when its texts are masked. */
  answerBytes: (bytes: number) => number;
  /** Refuses callers who may not see the payload of an item with this name. */
  requirePayload: (request: Asking, name: string, what: string) => void;
  /** For a search by what payloads say: refuses it to those who do not see all payloads that it looks into. */
  requirePayloads: (request: FastifyRequest, what: string) => void;
  /** Whether the principal sees all payloads among what the route shows. */
  seesPayloads: (request: FastifyRequest) => boolean;
  /** For a filter by a whole text or key: refuses it to them if the rules cover what it asks for. */
  requireVisible: (
    request: FastifyRequest,
    what: string,
    asked: string | undefined,
    part: 'text' | 'key',
  ) => void;
  /** For a filter by the beginning of texts: refuses it to them if the rules cover anything in texts. */
  requireTexts: (request: FastifyRequest, what: string, asked: string | undefined) => void;
  /** Throws when the caller has revealed too much within the last minute. */
  limitReveals: RevealLimit;
}>;

export type MaskPayloads = (dimension: Dimension, permission: Permission) => PayloadMasks;

/** Above it an answer that fits without masks would be refused. */
const mostMaskedBytes = 48 * 1024 * 1024;

export function maskPayloadsBy(
  protection: Protection,
  limitReveals: RevealLimit = createRevealLimit(),
): MaskPayloads {
  return (dimension, permission) => ({
    of({ principal }, name, ...otherNames) {
      const masks = protection.of(dimension, [name, ...otherNames]);
      return isAllowed(principal, permission, { [dimension]: [name] }) ? masks : masks.withoutPayload();
    },
    ofAdded({ principal }, name, createdBy) {
      const masks = protection.of(dimension, [name]);
      const isOwn = createdBy !== null && createdBy === creatorOf(principal);
      const isShown = isOwn || isAllowed(principal, permission, { [dimension]: [name] });
      return isShown ? masks : masks.withoutPayload();
    },
    ofAny: () => protection.ofAny(dimension),
    answerBytes: (bytes) =>
      protection.ofAny(dimension).isEmpty ? bytes : Math.max(bytes, Math.min(2 * bytes, mostMaskedBytes)),
    limitReveals,
    requirePayload({ principal }, name, what) {
      if (!isAllowed(principal, permission, { [dimension]: [name] }))
        throw permissionDenied(`${what} needs the permission ${permission}`, permission);
    },
    seesPayloads: (request) => seesPayloads(request, dimension, permission),
    requirePayloads: (request, what) => requirePayloads(request, { dimension, permission, what }),
    requireTexts(request, what, asked) {
      if (asked !== undefined && protection.ofAny(dimension).protectsTexts)
        requirePayloads(request, { dimension, permission, what });
    },
    requireVisible(request, what, asked, part) {
      if (asked === undefined) return;
      const masks = protection.ofAny(dimension);
      const shown = part === 'key' ? masks.keyText(asked) : masks.text(asked);
      if (shown !== asked) requirePayloads(request, { dimension, permission, what });
    },
  });
}

function requirePayloads(
  request: FastifyRequest,
  { dimension, permission, what }: Readonly<{ dimension: Dimension; permission: Permission; what: string }>,
): void {
  if (seesPayloads(request, dimension, permission)) return;
  throw permissionDenied(`${what} looks into payloads: this needs the permission ${permission}`, permission);
}

function seesPayloads(request: FastifyRequest, dimension: Dimension, permission: Permission): boolean {
  const { principal } = request;
  if (mayEverywhere(principal, permission)) return true;
  const { access } = request.routeOptions.config;
  const namesOf = (needed: Permission): string => JSON.stringify(namesAllowed(principal, needed, dimension));
  return (
    typeof access === 'object' &&
    namesOf(permission) === namesOf(access.permission) &&
    mayAnywhere(principal, permission)
  );
}
