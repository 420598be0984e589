import type { FastifyRequest } from 'fastify';
import { addActionRoute } from '../../platform/http/action-route.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { apiRoot, invalidField, readInstantField } from '../../platform/http/slice-input.ts';
import { withCurrent } from '../current-message.ts';
import { masksOf, presentWholeMessage } from '../present.ts';
import * as schemas from '../schemas.ts';
import { sourceScope } from '../sources.ts';
import { messageScope, parseMessageId, targetScope, type Message } from '../stored-message.ts';
import { deleteMessage, markMessageDead, reopenMessage, routeMessage } from './act-on-message.ts';
import { addEraseRoute } from './erase-route.ts';
import { addEditRoute } from './edit-route.ts';
import type { MaskDeps } from './edit-masks.ts';
import { forgetSource } from './forget-source.ts';
import { seekSource, type SeekDeps, type SeekTarget } from './seek-source.ts';
import type { ValidateDeps } from './validate-edit.ts';
import { addValidateRoute } from './validate-route.ts';

const root = apiRoot('dlq');

export type DecideDeps = ValidateDeps &
  MaskDeps &
  SeekDeps &
  Readonly<{
    getMessage: (id: string) => Promise<Message>;
    /** Reserves memory for a response with the whole message, or throws. */
    reserveMessage: (request: FastifyRequest, id: string) => Promise<void>;
  }>;

export function addDecideRoutes(app: HttpApp, deps: DecideDeps): void {
  addMessageRoutes(app, deps);
  addEditRoute(app, deps);
  addValidateRoute(app, deps);
  addEraseRoute(app, deps);
  addSourceRoutes(app, deps);
}

function addMessageRoutes(app: HttpApp, deps: DecideDeps): void {
  const { IdParams: params, MessageSchema: answer } = schemas;

  addActionRoute(app, {
    method: 'DELETE',
    path: `${root}/messages/:id`,
    access: { permission: 'dlq:messages:delete', scope: messageScope(deps.db) },
    operationId: 'deleteMessage',
    summary: 'Delete a message, archived or not',
    description: 'Deletes the message with its payload. Its history stays.',
    errors: [404, 409],
    params,
    answer: schemas.DeleteSchema,
    async act({ params: given, by }) {
      const id = parseMessageId(given.id);
      await withCurrent(deps.findHead, id, () => deleteMessage(deps, { id, ...by }));
      return { success: true, message: `message ${id} deleted` };
    },
  });
  addActionRoute(app, {
    path: `${root}/messages/:id/dead`,
    access: { permission: 'dlq:messages:mark-dead', scope: messageScope(deps.db) },
    operationId: 'markMessageDead',
    summary: 'Mark a message as dead',
    description: 'A dead message is not retried until it is reopened.',
    errors: [404, 409],
    params,
    body: schemas.OptionalReasonBody,
    answer,
    async act({ params: given, by, request }) {
      const id = parseMessageId(given.id);
      return actOn(deps, request, id, () => markMessageDead(deps, { id, ...by }));
    },
  });
  addActionRoute(app, {
    path: `${root}/messages/:id/reopen`,
    access: { permission: 'dlq:messages:reopen', scope: messageScope(deps.db) },
    operationId: 'reopenMessage',
    summary: 'Reopen a message with a new retry budget',
    description: 'For a dead, resolved or spent message. It becomes PENDING with `retry_count` 0.',
    errors: [404, 409],
    params,
    body: schemas.ReasonBody,
    answer,
    async act({ params: given, body: { reason }, by, request }) {
      const id = parseMessageId(given.id);
      return actOn(deps, request, id, () => reopenMessage(deps, { id, ...by, reason }));
    },
  });
  addActionRoute(app, {
    path: `${root}/messages/:id/route`,
    access: { permission: 'dlq:messages:route', scope: targetScope(deps.db) },
    operationId: 'routeMessage',
    summary: 'Choose the target topic of a message',
    description:
      'For a pending or dead message. The topic must exist, and need not be in `dlq.allowed_targets`.',
    errors: [404, 409, 422],
    params,
    body: schemas.RouteBody,
    answer,
    async act({ params: given, body: { target_topic: targetTopic, reason }, by, request }) {
      const id = parseMessageId(given.id);
      return actOn(deps, request, id, () => routeMessage(deps, { id, ...by, reason, targetTopic }));
    },
  });
}

/** Reserves memory for the response before it acts, so that a rejected request has changed nothing. */
async function actOn(
  deps: DecideDeps,
  request: FastifyRequest,
  id: string,
  act: () => Promise<unknown>,
): Promise<object> {
  await deps.reserveMessage(request, id);
  await withCurrent(deps.findHead, id, act);
  const message = await deps.getMessage(id);
  return presentWholeMessage(message, masksOf(deps.masking, request, message));
}

function addSourceRoutes(app: HttpApp, deps: DecideDeps): void {
  addActionRoute(app, {
    path: `${root}/sources/:topic/:partition/seek`,
    access: { permission: 'dlq:sources:manage', scope: sourceScope },
    operationId: 'seekSource',
    summary: 'Read a partition again from an earlier position',
    description:
      'Send exactly one of `offset`, `timestamp` and `earliest`. Records stored before are not stored twice.',
    errors: [404, 409, 422],
    params: schemas.SeekParams,
    body: schemas.SeekBody,
    answer: schemas.SeekSchema,
    async act({ params, body, by }) {
      const target = seekTarget(body);
      const { from, to } = await seekSource(deps, { ...params, target, ...by, reason: body.reason });
      const message = `${params.topic}/${params.partition} is read again from offset ${to}`;
      return { ...params, from, to, message };
    },
  });
  addActionRoute(app, {
    method: 'DELETE',
    path: `${root}/sources/:topic/:partition`,
    access: { permission: 'dlq:sources:manage', scope: sourceScope },
    operationId: 'forgetSource',
    summary: 'Forget a partition of a deleted topic or cluster',
    description: 'Removes its position from the accounting. Its messages stay.',
    errors: [404, 409],
    params: schemas.SeekParams,
    query: schemas.ReasonQuery,
    answer: schemas.DeleteSchema,
    async act({ params: { topic, partition }, query: { reason }, by }) {
      await forgetSource(deps.db, { topic, partition, ...by, reason });
      return { success: true, message: `source ${topic}/${partition} forgotten` };
    },
  });
}

function seekTarget(
  body: Readonly<{
    offset?: number | undefined;
    timestamp?: string | undefined;
    earliest?: true | undefined;
  }>,
): SeekTarget {
  const named = [body.offset, body.timestamp, body.earliest].filter((target) => target !== undefined);
  if (named.length !== 1)
    throw invalidField(
      'dlq',
      'offset',
      'exclusive',
      'cannot be combined: send offset, timestamp or earliest',
    );
  if (body.offset !== undefined) return { to: 'offset', offset: BigInt(body.offset) };
  const instant = readInstantField('dlq', 'timestamp', body.timestamp);
  if (instant === undefined) return { to: 'earliest' };
  if (instant.getTime() < 0) throw invalidField('dlq', 'timestamp', 'format', 'must not be before 1970');
  return { to: 'timestamp', timestampMs: BigInt(instant.getTime()) };
}
