import type { Static } from 'typebox';
import { AppError } from '../../../kernel/errors.ts';
import { addActionRoute } from '../../../platform/http/action-route.ts';
import { actorOf } from '../../../platform/http/actor.ts';
import type { HttpApp } from '../../../platform/http/http-app.ts';
import { addListRoute } from '../../../platform/http/list-route.ts';
import { apiRoot, readInstantField, readUuidField } from '../../../platform/http/slice-input.ts';
import type { RedriveCommand } from '../../domain/redrive.ts';
import type { Json } from '../../present.ts';
import { commandRedrive } from './command-redrive.ts';
import { createRedrive, type CreateDeps } from './create-redrive.ts';
import { presentItem, presentRedrive, presentWholeRedrive } from './present-redrive.ts';
import {
  getRedrive,
  listItems,
  listRedrives,
  readProgress,
  type Redrive,
  type RedriveItem,
} from './read-redrives.ts';
import * as schemas from './redrive-schemas.ts';
import type { RedriveFilter } from './redrives-table.ts';

const root = `${apiRoot('dlq')}/redrives`;

export function addRedrivePlanRoutes(app: HttpApp, deps: CreateDeps): void {
  addCreateRoute(app, deps);
  addReadRoutes(app, deps);
  for (const one of commands) addCommandRoute(app, deps, one);
}

function addCreateRoute(app: HttpApp, deps: CreateDeps): void {
  app.post(
    root,
    {
      schema: {
        operationId: 'planRedrive',
        summary: 'Plan a redrive of the messages that match a filter',
        description:
          'Answers at once; the plan is made in the background, and nothing is sent before it is started. Messages that arrive or change later are not touched. At most a million messages.',
        errors: [422],
        takesActor: true,
        body: schemas.NewRedriveBody,
        response: { 202: schemas.CreatedSchema },
      },
    },
    async (request, reply) => {
      const { body } = request;
      refuseUnsupported(body);
      const { rate_per_second = null, order = 'key', reopen = false, reason } = body;
      const id = await createRedrive(deps, {
        filter: readFilter(body.filter),
        options: { rate_per_second, order, reopen },
        reason,
        actor: actorOf(request),
      });
      return reply.status(202).send({ id, state: 'planning' });
    },
  );
}

/** What would change the effect of the redrive must not be ignored. */
function refuseUnsupported({ canary = null }: Static<typeof schemas.NewRedriveBody>): void {
  if (canary === null) return;
  const field = 'canary';
  const message = `${field} is not supported yet; omit it`;
  throw new AppError('SYS_DLQ_UNSUPPORTED', 'semantic', message, {
    details: [{ field, reason: 'unsupported', message }],
  });
}

function readFilter(sent: Static<typeof schemas.FilterSchema>): RedriveFilter {
  const { since, until, ids, ...rest } = sent;
  const instant = (field: string, text: string | undefined): string | undefined =>
    readInstantField('dlq', field, text)?.toISOString();
  const from = instant('filter.since', since);
  const to = instant('filter.until', until);
  return {
    ...rest,
    ...(from === undefined ? {} : { since: from }),
    ...(to === undefined ? {} : { until: to }),
    ...(ids === undefined
      ? {}
      : { ids: [...new Set(ids.map((id) => readUuidField('dlq', 'filter.ids', id)))] }),
  };
}

function addReadRoutes(app: HttpApp, deps: CreateDeps): void {
  addListRoute(app, {
    slice: 'dlq',
    path: root,
    operationId: 'listRedrives',
    summary: 'List redrives, newest first',
    description: 'Without counts, targets and the ids of the filter, which `GET …/:id` has.',
    query: schemas.RedriveListQuery,
    answer: schemas.RedriveListSchema,
    items: 'redrives',
    rowBytes: listedRedriveBytes,
    keyOf: ({ createdAtExact, id }: Redrive) => [createdAtExact, id],
    list: (_query, page) => listRedrives(deps.db, page),
    present: presentRedrive,
  });
  app.get(
    `${root}/:id`,
    {
      schema: {
        operationId: 'getRedrive',
        summary: 'Get one redrive with its counts',
        description: 'Shows the plan, the progress and, at the end, the receipt.',
        errors: [404],
        params: schemas.RedriveParams,
        response: { 200: schemas.RedriveSchema },
      },
    },
    async (request, reply) => reply.send(await showRedrive(deps, readId(request.params.id))),
  );
  addListRoute(app, {
    slice: 'dlq',
    path: `${root}/:id/items`,
    operationId: 'listRedriveItems',
    summary: 'List the messages of a redrive in the order of sending',
    description: 'Each message has one outcome; `waiting` and `in_flight` have none yet.',
    errors: [404],
    params: schemas.RedriveParams,
    query: schemas.ItemListQuery,
    answer: schemas.ItemListSchema,
    items: 'items',
    rowBytes: listedItemBytes,
    cursor: () => ['bigint'],
    keyOf: ({ position }: RedriveItem) => [String(position)],
    list: ({ outcome }, page, params) => {
      const redriveId = readId((params as Static<typeof schemas.RedriveParams>).id);
      return listItems(deps.db, { redriveId, ...(outcome === undefined ? {} : { outcome }) }, page);
    },
    present: presentItem,
  });
}

/** A key in a filter may have 10 000 characters. */
const listedRedriveBytes = 70_000;
const listedItemBytes = 8000;

const readId = (id: string): string => readUuidField('dlq', 'id', id);

async function showRedrive({ db }: CreateDeps, id: string): Promise<Json> {
  const redrive = await getRedrive(db, id);
  return presentWholeRedrive(redrive, await readProgress(db, id));
}

type CommandRoute = Readonly<{ command: RedriveCommand; summary: string; description: string }>;

const commands: readonly CommandRoute[] = [
  {
    command: 'start',
    summary: 'Start a planned redrive',
    description: 'Publishes the messages of the plan, in its order.',
  },
  {
    command: 'pause',
    summary: 'Pause a running redrive',
    description: 'After the answer no further message is claimed; those in flight are settled.',
  },
  {
    command: 'resume',
    summary: 'Resume a paused or stopped redrive',
    description: 'Continues with the messages that have no outcome yet.',
  },
  {
    command: 'cancel',
    summary: 'Cancel a redrive',
    description:
      'After the answer no further message is claimed. Those that wait end as cancelled; those in flight are settled.',
  },
];

function addCommandRoute(
  app: HttpApp,
  deps: CreateDeps,
  { command, summary, description }: CommandRoute,
): void {
  addActionRoute(app, {
    path: `${root}/:id/${command}`,
    operationId: `${command}Redrive`,
    summary,
    description,
    errors: [404, 409],
    params: schemas.RedriveParams,
    body: schemas.CommandBody,
    answer: schemas.RedriveSchema,
    async act({ params, by }) {
      const id = readId(params.id);
      await commandRedrive(deps.db, { id, command, ...by });
      return showRedrive(deps, id);
    },
  });
}
