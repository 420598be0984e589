import { Type } from 'typebox';
import { addActionRoute } from '../../platform/http/action-route.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { apiRoot } from '../../platform/http/slice-input.ts';
import { withCurrent } from '../current-message.ts';
import { messageTag } from '../present.ts';
import { IdParams } from '../schemas.ts';
import { parseMessageId, targetScope } from '../stored-message.ts';
import { EditBody, readChanges } from './edit-body.ts';
import { requireNoMask, type MaskDeps } from './edit-masks.ts';
import { editMessage, type EditDeps } from './edit-message.ts';

const EditedSchema = Type.Object({
  id: Type.String({ format: 'uuid' }),
  version: Type.Integer({ minimum: 1, examples: [1] }),
});

export function addEditRoute(app: HttpApp, deps: EditDeps & MaskDeps): void {
  addActionRoute(app, {
    path: `${apiRoot('dlq')}/messages/:id/edit`,
    access: { permission: 'dlq:messages:edit', scope: targetScope(deps.db) },
    operationId: 'editMessage',
    summary: 'Edit a message: make a new version of its record',
    description:
      'For a pending or dead message, with the `ETag` with which it was read. The original stays, as version 0; the next retry publishes the new version. A dead message stays dead until it is reopened.',
    errors: [404, 409, 422],
    params: IdParams,
    body: EditBody,
    answer: EditedSchema,
    isExact: true,
    ifMatch: 'dlq',
    async act({ params, body, by, tags, request, reply }) {
      const id = parseMessageId(params.id);
      const changes = readChanges(body);
      await requireNoMask(deps, request, id, changes);
      const edited = await withCurrent(deps.findHead, id, () =>
        editMessage(deps, {
          id,
          ...by,
          reason: body.reason,
          changes,
          tags,
          maySendTwice: body.may_send_twice === true,
        }),
      );
      reply.header('etag', messageTag(edited));
      return { id, version: edited.version };
    },
  });
}
