import type { FastifyReply } from 'fastify';
import type { Static } from 'typebox';
import { entityTagOf } from '../../../platform/http/entity-tag.ts';
import type { PayloadMasks } from '../../../platform/http/access/payload-masks.ts';
import type { HttpApp } from '../../../platform/http/http-app.ts';
import { addIdPrefixRoute } from '../../../platform/http/id-prefix-route.ts';
import { addListRoute } from '../../../platform/http/list-route.ts';
import { apiRoot } from '../../../platform/http/slice-input.ts';
import { sendEvents } from '../../../platform/http/streams/send-events.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { findIds, type TableWithIds } from '../../../platform/postgres/find-ids.ts';
import { areNamed } from '../../../platform/postgres/is-named.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { redriveStates } from '../../domain/redrive.ts';
import type { Json } from '../../present.ts';
import { readId, redriveScope } from './access/redrive-scope.ts';
import { createItemLines } from './follow/item-lines.ts';
import { createRedriveEvents } from './follow/redrive-events.ts';
import { presentItem, presentProgress, presentRedrive, presentWholeRedrive } from './present-redrive.ts';
import {
  getRedrive,
  listItems,
  listRedrives,
  readProgress,
  type ItemFilter,
  type Redrive,
  type RedriveItem,
} from './read-redrives.ts';
import * as schemas from './redrive-schemas.ts';

export const redrivesRoot = `${apiRoot('dlq')}/redrives`;
const root = redrivesRoot;

/** `stopping` ends open streams. */
export type ReadRouteDeps = Readonly<{ db: Database; stopping: AbortSignal; masking: PayloadMasks }>;

export function addRedriveReadRoutes(app: HttpApp, deps: ReadRouteDeps): void {
  addEventsRoute(app, deps);
  addListRoutes(app, deps);
  addItemsRoute(app, deps);
}

const tables: readonly TableWithIds[] = [
  {
    table: sql`dlq.redrives`,
    id: sql`id`,
    status: sql`state`,
    isArchive: false,
    isInScope: (names) => areNamed(sql`t.topics`, names),
  },
];

function addListRoutes(app: HttpApp, deps: ReadRouteDeps): void {
  const masks = deps.masking.ofAny();
  addIdPrefixRoute(app, {
    slice: 'dlq',
    path: `${root}/ids`,
    access: { permission: 'dlq:redrives:view', scope: { by: 'topics', in: 'list' } },
    operationId: 'findRedriveIds',
    items: 'redrives',
    statuses: redriveStates,
    find: (range, limit, names) => findIds(deps.db, tables, range, { limit, names }),
  });
  addListRoute(app, {
    slice: 'dlq',
    path: root,
    access: { permission: 'dlq:redrives:view', scope: { by: 'topics', in: 'list' } },
    operationId: 'listRedrives',
    summary: 'List redrives, newest first',
    description: 'Without counts, targets and the ids of the filter, which `GET …/:id` has.',
    query: schemas.RedriveListQuery,
    answer: schemas.RedriveListSchema,
    items: 'redrives',
    rowBytes: listedRedriveBytes,
    keyOf: ({ createdAtExact, id }: Redrive) => [createdAtExact, id],
    list: ({ state, policy, automatic }, page, _request, names) =>
      listRedrives(
        deps.db,
        {
          names,
          ...(state === undefined ? {} : { states: state }),
          ...(policy === undefined ? {} : { policy }),
          ...(automatic === undefined ? {} : { automatic }),
        },
        page,
      ),
    present: (redrive) => presentRedrive(redrive, masks),
  });
  app.get(
    `${root}/:id`,
    {
      config: { access: { permission: 'dlq:redrives:view', scope: redriveScope(deps.db) } },
      schema: {
        operationId: 'getRedrive',
        summary: 'Get one redrive with its counts',
        description: 'Shows the plan, the progress and, at the end, the receipt.',
        errors: [404],
        hasEtag: true,
        params: schemas.RedriveParams,
        response: { 200: schemas.RedriveSchema },
      },
    },
    async (request, reply) => reply.send(await showRedrive(deps, readId(request.params.id), reply)),
  );
}

function addItemsRoute(app: HttpApp, deps: ReadRouteDeps): void {
  const masks = deps.masking.ofAny();
  const lines = createItemLines(deps.db, masks);
  addListRoute(app, {
    slice: 'dlq',
    path: `${root}/:id/items`,
    access: { permission: 'dlq:redrives:view', scope: redriveScope(deps.db) },
    operationId: 'listRedriveItems',
    summary: 'List the messages of a redrive in the order of sending',
    description:
      'Each message has one outcome; `waiting` and `in_flight` have none yet. With `Accept: application/x-ndjson`, or with `format=ndjson` as a download, all of them are streamed, one JSON object per line; `page`, `page_size` and `cursor` do not apply then.',
    errors: [404],
    params: schemas.RedriveParams,
    query: schemas.ItemListQuery,
    answer: schemas.ItemListSchema,
    items: 'items',
    rowBytes: listedItemBytes,
    cursor: () => ['bigint'],
    lines: {
      open: async ({ outcome }, params) => lines.open(itemFilter(params, outcome)),
      fileName: (params) => `redrive-${itemFilter(params, undefined).redriveId}`,
    },
    keyOf: ({ position }: RedriveItem) => [String(position)],
    list: ({ outcome }, page, { params }) => listItems(deps.db, itemFilter(params, outcome), page),
    present: (item) => presentItem(item, masks),
  });
}

function itemFilter(params: unknown, outcome: ItemFilter['outcome']): ItemFilter {
  const redriveId = readId((params as Static<typeof schemas.RedriveParams>).id);
  return { redriveId, ...(outcome === undefined ? {} : { outcome }) };
}

function addEventsRoute(app: HttpApp, { db, stopping, masking }: ReadRouteDeps): void {
  const events = createRedriveEvents({
    stopping,
    async read(id) {
      const redrive = await getRedrive(db, id);
      return presentProgress(redrive, await readProgress(db, id), masking.ofAny());
    },
  });
  app.get(
    `${root}/:id/events`,
    {
      // A HEAD request would read the whole stream.
      exposeHeadRoute: false,
      config: { access: { permission: 'dlq:redrives:view', scope: redriveScope(db) } },
      schema: {
        operationId: 'followRedrive',
        summary: 'Follow a redrive by server-sent events',
        description:
          'Sends an event `progress` with state and counts when they change, at most once a second, and an event `end` with the receipt when the redrive has ended. Between events it sends comments. Any replica can serve it. A client that does not read is disconnected.',
        errors: [404],
        params: schemas.RedriveParams,
        response: { 200: schemas.EventsResponse },
      },
    },
    async (request, reply) => {
      return sendEvents(reply, await events.open(readId(request.params.id)));
    },
  );
}

/** A key in a filter may have 10 000 characters. */
const listedRedriveBytes = 70_000;
const listedItemBytes = 8000;

export async function showRedrive(
  { db, masking }: Pick<ReadRouteDeps, 'db' | 'masking'>,
  id: string,
  reply?: FastifyReply,
): Promise<Json> {
  const redrive = await getRedrive(db, id);
  reply?.header('etag', entityTagOf(redrive.revision));
  return presentWholeRedrive(redrive, await readProgress(db, id), masking.ofAny());
}
