import type { FastifyRequest } from 'fastify';
import type { Dimension } from '../../../kernel/access/scope.ts';
import type { AppError } from '../../../kernel/errors.ts';
import type { ItemScope } from './route-access.ts';

/** The item of a parameter of the path. Out of scope it is not found, as if it did not exist. */
export function scopeOfItem<Id>(
  by: Dimension,
  item: Readonly<{
    param: string;
    read: (text: string) => Id;
    /** Undefined if there is no such item. */
    namesOf: (id: Id, request: FastifyRequest) => Promise<readonly string[] | undefined>;
    /** Whether the subject created or holds the item. */
    isOwn?: (id: Id, subject: string) => Promise<boolean>;
    notFound: (id: Id) => AppError;
  }>,
): ItemScope {
  const idOf = ({ params }: FastifyRequest): Id =>
    item.read((params as Readonly<Record<string, string>>)[item.param] ?? '');
  return {
    by,
    in: 'item',
    namesOf: async (request) => item.namesOf(idOf(request), request),
    isOwn: async (request, subject) => (await item.isOwn?.(idOf(request), subject)) === true,
    notFound: (request) => item.notFound(idOf(request)),
  };
}

/** What a parameter of the path names. Out of scope it is refused: the caller has named it. */
export function scopeOfPath(by: Dimension, param: string): ItemScope {
  return {
    by,
    in: 'item',
    namesOf: async ({ params }) => [(params as Readonly<Record<string, string>>)[param] ?? ''],
  };
}

/** What a field of the body names. A request without it may be about anything, so it is refused too. */
export function scopeOfBody(by: Dimension, field: string): ItemScope {
  return {
    by,
    in: 'item',
    async namesOf({ body }) {
      const name = (body as Readonly<Record<string, unknown>> | null | undefined)?.[field];
      return typeof name === 'string' ? [name] : undefined;
    },
  };
}
