import type { Readable } from 'node:stream';
import type { FastifyRequest } from 'fastify';
import { Type, type Static, type TSchema } from 'typebox';
import {
  encodeCursor,
  paginationOf,
  type CursorShape,
  type PageQuery,
  type PageRequest,
} from '../../kernel/page.ts';
import type { NameFilter } from '../../kernel/access/scope.ts';
import { namesFor } from './access/guard-access.ts';
import type { RouteAccess } from './access/route-access.ts';
import type { HttpApp } from './http-app.ts';
import type { LinesQuery } from './page-schema.ts';
import type { NamedErrorStatus } from './openapi/document-parts.ts';
import { readPageQuery } from './slice-input.ts';

/** One page of a list. */
export type Listed<Item> = Readonly<{
  items: readonly Item[];
  count: Readonly<{ total: number; isEstimate: boolean }>;
  hasNext: boolean;
  /** The key to continue after, if it is not that of the last item. Then also a page by number gets a cursor. */
  resumeAfter?: readonly string[] | null;
  /** Fields of the answer besides the items and the pagination. */
  more?: object;
}>;

/** A route that lists the items of a slice, by page number or by cursor. */
export type ListRoute<Query extends TSchema, Item> = Readonly<{
  slice: string;
  path: string;
  access: RouteAccess;
  operationId: string;
  summary: string;
  description: string;
  /** Errors besides those of every route. */
  errors?: readonly NamedErrorStatus[];
  params?: TSchema;
  query: Query;
  answer: TSchema;
  /** The answer's field with the items. */
  items: string;
  /** All items as lines of JSON; then the query has the parameters of `linesParameters`. */
  lines?: Lines<Static<Query>>;
  /** More than most rows take, to reserve memory for the answer. */
  rowBytes: number;
  /** The types of the values in a cursor; default: `created_at` and `id`. */
  cursor?: (query: Static<Query>) => CursorShape;
  /** Shows only what `names` lets through, if the route's access has a scope. */
  list: (
    query: Static<Query>,
    page: PageRequest,
    request: FastifyRequest,
    names: NameFilter,
  ) => Promise<Listed<Item>>;
  /** The values of the item's cursor. */
  keyOf: (item: Item, query: Static<Query>) => readonly string[];
  present: (item: Item, query: Static<Query>, request: FastifyRequest) => unknown;
  /** Throws if the caller may not ask this. */
  require?: (query: Static<Query>, request: FastifyRequest) => void;
}>;

/** For a client that accepts lines, or asks for them as a file to save. */
export type Lines<Query> = Readonly<{
  /** Bounds its own memory. */
  open: (query: Query, params: unknown, names: NameFilter) => Promise<Readable>;
  /** Without its extension; ASCII without quotes. */
  fileName: (params: unknown) => string;
}>;

export function addListRoute<Query extends TSchema, Item>(app: HttpApp, route: ListRoute<Query, Item>): void {
  const { slice, path, access, operationId, summary, description, errors, params, query } = route;
  const schema = {
    operationId,
    summary,
    description,
    ...(errors === undefined ? {} : { errors }),
    ...(params === undefined ? {} : { params }),
    querystring: query,
    response: { 200: route.lines === undefined ? route.answer : orLines(route.answer) },
  };
  const asksForLines = ({ method, query: asked, headers }: FastifyRequest): boolean =>
    route.lines !== undefined && method === 'GET' && wantsLines(asked as LinesQuery, headers.accept);
  app.get(path, { config: { access, heavy: asksForLines }, schema }, async (request, reply) => {
    const asked = request.query as Static<Query> & PageQuery & LinesQuery;
    route.require?.(asked, request);
    if (route.lines !== undefined && asksForLines(request)) {
      const readable = await route.lines.open(asked, request.params, namesFor(request));
      if (asked.format === 'ndjson') {
        const fileName = `${route.lines.fileName(request.params)}.ndjson`;
        reply.header('content-disposition', `attachment; filename="${fileName}"`);
      }
      return reply.type(linesType).send(readable);
    }
    const page = readPageQuery(slice, asked, route.cursor?.(asked));
    await request.reserveAnswer(page.pageSize * route.rowBytes);
    const listed = await route.list(asked, page, request, namesFor(request));
    return reply.send({
      [route.items]: listed.items.map((item) => route.present(item, asked, request)),
      pagination: paginationFor(route, page, listed, asked),
      ...listed.more,
    });
  });
}

const linesType = 'application/x-ndjson';

function orLines(answer: TSchema): object {
  return {
    description: 'A page, or all items as lines of JSON.',
    content: {
      'application/json': { schema: answer },
      [linesType]: { schema: Type.String({ examples: ['{"position":1}\n'] }) },
    },
  };
}

function wantsLines({ format }: LinesQuery, accept: string | undefined): boolean {
  return format === undefined ? acceptsLines(accept) : format === 'ndjson';
}

/** The type is named; one with the weight 0 is not accepted. */
function acceptsLines(accept = ''): boolean {
  return accept.split(',').some((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    return type === linesType && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

function paginationFor<Query extends TSchema, Item>(
  { keyOf }: ListRoute<Query, Item>,
  page: PageRequest,
  { items, count, hasNext, resumeAfter = null }: Listed<Item>,
  query: Static<Query>,
): object {
  const last = items.at(-1);
  const next = resumeAfter ?? (hasNext && last !== undefined ? keyOf(last, query) : null);
  const hasCursor = page.by === 'keyset' || resumeAfter !== null;
  return paginationOf({
    total: count.total,
    isEstimate: count.isEstimate,
    page: page.page,
    pageSize: page.pageSize,
    hasNext,
    ...(hasCursor ? { nextCursor: next === null ? null : encodeCursor(next) } : {}),
  });
}
