import { Type } from 'typebox';
import { formatInstant } from '../../kernel/timestamp.ts';
import {
  minPrefixDigits,
  UUID_PREFIX_PATTERN,
  uuidsWithPrefix,
  type UuidRange,
} from '../../kernel/uuid-prefix.ts';
import type { NameFilter, OwnItems } from '../../kernel/access/scope.ts';
import { namesFor, ownFor } from './access/guard-access.ts';
import type { RouteAccess } from './access/route-access.ts';
import type { HttpApp } from './http-app.ts';
import { checkedAs, closed, nullable, Timestamp } from './schema-parts.ts';
import { invalidField } from './slice-input.ts';

/** An item as the list of candidates shows it. */
export type FoundId = Readonly<{ id: string; status: string; createdAt: Date | null; isArchived: boolean }>;

/** Enough for a person to choose from. */
const maxFound = 10;

const Query = Type.Object(
  {
    prefix: Type.String({
      maxLength: 1000,
      description: `At least the first ${minPrefixDigits} hexadecimal digits of a UUID.`,
      examples: ['01a1dfae'],
      ...checkedAs({ pattern: UUID_PREFIX_PATTERN, maxLength: 36 }),
    }),
  },
  closed,
);

const answerOf = (statuses: readonly string[]) =>
  Type.Object({
    ids: Type.Array(
      Type.Object({
        id: Type.String({ format: 'uuid' }),
        status: Type.Enum([...statuses]),
        created_at: nullable(Timestamp),
        archived: Type.Boolean(),
      }),
    ),
    has_more: Type.Boolean(),
  });

/** A route that completes ids which people have shortened. `find` reads a range of an index, up to a limit. */
export function addIdPrefixRoute(
  app: HttpApp,
  route: Readonly<{
    slice: string;
    path: string;
    access: RouteAccess;
    operationId: string;
    items: string;
    statuses: readonly string[];
    find: (
      range: UuidRange,
      limit: number,
      names: NameFilter,
      own: OwnItems | null,
    ) => Promise<readonly FoundId[]>;
  }>,
): void {
  const { slice, path, access, operationId, items, find } = route;
  const schema = {
    operationId,
    summary: `Complete a shortened id of ${items}`,
    description: `Lists the first ${maxFound} ids that begin with the prefix, also of archived ${items}.`,
    querystring: Query,
    response: { 200: answerOf(route.statuses) },
  };
  app.get(path, { config: { access }, schema }, async (request, reply) => {
    const range = uuidsWithPrefix(request.query.prefix);
    if (range === null) throw invalidField(slice, 'prefix', 'format', 'must be the beginning of a UUID');
    const found = await find(range, maxFound + 1, namesFor(request), ownFor(request));
    return reply.send({ ids: found.slice(0, maxFound).map(present), has_more: found.length > maxFound });
  });
}

function present({ id, status, createdAt, isArchived }: FoundId) {
  return { id, status, created_at: formatInstant(createdAt), archived: isArchived };
}
