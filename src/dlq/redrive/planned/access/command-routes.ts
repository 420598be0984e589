import type { FastifyRequest } from 'fastify';
import type { Permission } from '../../../../kernel/access/permissions.ts';
import type { Rights } from '../../../../kernel/access/rights.ts';
import { AppError } from '../../../../kernel/errors.ts';
import { addActionRoute } from '../../../../platform/http/action-route.ts';
import type { HttpApp } from '../../../../platform/http/http-app.ts';
import type { RedriveCommand } from '../../../domain/redrive.ts';
import { commandRedrive } from '../command-redrive.ts';
import { getRedrive } from '../read-redrives.ts';
import { redrivesRoot as root } from '../read-routes.ts';
import * as schemas from '../redrive-schemas.ts';
import { approveRedrive } from './approve-redrive.ts';
import { lostRightOf } from './redrive-rights.ts';
import { readId, redriveScope } from './redrive-scope.ts';
import { startRedrive, type StartDeps } from './start-redrive.ts';

export type CommandRouteDeps = StartDeps & Readonly<{ rights: Rights }>;

type ShowRedrive = (id: string) => Promise<object>;

/** What people do to a redrive. `show` makes the answer. */
export function addCommandRoutes(app: HttpApp, deps: CommandRouteDeps, show: ShowRedrive): void {
  addApproveRoute(app, deps, show);
  for (const one of commands) addCommandRoute(app, { ...deps, show }, one);
}

type CommandRoute = Readonly<{
  command: RedriveCommand;
  permission: Permission;
  summary: string;
  description: string;
}>;

const commands: readonly CommandRoute[] = [
  {
    command: 'start',
    permission: 'dlq:redrives:start',
    summary: 'Start a planned redrive',
    description: 'Publishes the messages of the plan, in its order.',
  },
  {
    command: 'pause',
    permission: 'dlq:redrives:pause',
    summary: 'Pause a running redrive',
    description: 'After the answer no further message is claimed; those in flight are settled.',
  },
  {
    command: 'resume',
    permission: 'dlq:redrives:start',
    summary: 'Resume a paused or stopped redrive',
    description: 'Continues with the messages that have no outcome yet.',
  },
  {
    command: 'cancel',
    permission: 'dlq:redrives:cancel',
    summary: 'Cancel a redrive',
    description:
      'After the answer no further message is claimed. Those that wait end as cancelled; those in flight are settled.',
  },
];

/** From now on the redrive runs as long as this caller may do what it does. */
async function takeOver(
  { db, rights }: CommandRouteDeps,
  request: FastifyRequest,
  id: string,
): Promise<void> {
  const lost = lostRightOf('the caller', request.principal, await getRedrive(db, id));
  if (lost !== null) throw new AppError('SYS_AUTH_PERMISSION_DENIED', 'forbidden', lost);
  await rights.keep(request.principal);
}

function addApproveRoute(app: HttpApp, deps: CommandRouteDeps, show: ShowRedrive): void {
  addActionRoute(app, {
    path: `${root}/:id/approve`,
    access: { permission: 'dlq:redrives:approve', scope: redriveScope(deps.db) },
    operationId: 'approveRedrive',
    summary: 'Approve a large redrive as a second person',
    description:
      'For a plan that awaits approval: it has more than `dlq.redrive.max_without_approval` messages, together with what its starter sent in the last hour. Not by a key, nor by whoever planned or changed it. A later change voids the approval.',
    errors: [404, 409],
    params: schemas.RedriveParams,
    body: schemas.ApproveBody,
    answer: schemas.RedriveSchema,
    async act({ params, body: { reason }, by, request }) {
      const id = readId(params.id);
      await approveRedrive(deps, { ...by, id, reason, isUser: request.principal.type === 'user' });
      return show(id);
    },
  });
}

function addCommandRoute(
  app: HttpApp,
  { show, ...deps }: CommandRouteDeps & Readonly<{ show: ShowRedrive }>,
  { command, permission, summary, description }: CommandRoute,
): void {
  addActionRoute(app, {
    path: `${root}/:id/${command}`,
    access: { permission, scope: redriveScope(deps.db) },
    operationId: `${command}Redrive`,
    summary,
    description,
    errors: [404, 409],
    params: schemas.RedriveParams,
    body: schemas.CommandBody,
    answer: schemas.RedriveSchema,
    async act({ params, by, request }) {
      const id = readId(params.id);
      if (command === 'start' || command === 'resume') await takeOver(deps, request, id);
      await (command === 'start'
        ? startRedrive(deps, { id, command, ...by })
        : commandRedrive(deps.db, { id, command, ...by }));
      return show(id);
    },
  });
}
