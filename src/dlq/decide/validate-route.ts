import { Type } from 'typebox';
import type { AppError } from '../../kernel/errors.ts';
import { readIfMatch } from '../../platform/http/entity-tag.ts';
import { statusOf } from '../../platform/http/errors/error-status.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { closed, nullable, Reason } from '../../platform/http/schema-parts.ts';
import { apiRoot } from '../../platform/http/slice-input.ts';
import { withCurrent } from '../current-message.ts';
import { IdParams } from '../schemas.ts';
import { parseMessageId, targetScope } from '../stored-message.ts';
import { EditBody, readChanges } from './edit-body.ts';
import { requireNoMask, type MaskDeps } from './edit-masks.ts';
import type { Changes } from './edit-message.ts';
import { validateEdit, valueFormats, type ValidateDeps, type Validation } from './validate-edit.ts';

const ValidateBody = Type.Object({ ...EditBody.properties, reason: Type.Optional(Reason) }, closed);

const IfMatchHeader = Type.Object({
  'if-match': Type.Optional(
    Type.String({ description: 'The `ETag` that the edit will have; by default the current one.' }),
  ),
});

const detail = {
  field: Type.String({ examples: ['target_topic'] }),
  reason: Type.String({ examples: ['not_a_target'] }),
  message: Type.String({ examples: ['is a dead-letter topic'] }),
};

const ValidationSchema = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    valid: Type.Boolean({ description: 'The edit would be made, unless something changes meanwhile.' }),
    version: Type.Integer({ minimum: 1, description: 'That the edit would make.' }),
    problems: Type.Array(
      Type.Object({
        status: Type.Integer({ examples: [422], description: 'That the edit would answer.' }),
        code: Type.String({ examples: ['SYS_DLQ_WRONG_TARGET'] }),
        message: Type.String({ examples: ['orders.dlq is a dead-letter topic'] }),
        details: Type.Array(Type.Object(detail)),
      }),
    ),
    warnings: Type.Array(Type.Object(detail), {
      description:
        'What the edit would not be refused for: `not_json`, `tombstone`, `missing`, `denied`, `no_reader`, `unroutable`, `dead`.',
    }),
    value: nullable(
      Type.Object(
        {
          bytes: nullable(Type.Integer({ minimum: 0 })),
          format: Type.Enum([...valueFormats], { examples: ['json'] }),
        },
        { description: 'Null if the value stays as it is.' },
      ),
    ),
    target: Type.Object({
      topic: Type.String({ examples: ['orders.v1'] }),
      state: Type.Enum(['writable', 'missing', 'denied', 'unknown'], {
        description: '`unknown` if the broker was not asked or did not answer within 3 s.',
      }),
      consumer_groups: nullable(
        Type.Array(Type.String({ examples: ['billing'] }), {
          description: 'With committed offsets of the topic; null if they are not known.',
        }),
      ),
    }),
  },
  { title: 'EditValidation' },
);

export function addValidateRoute(app: HttpApp, deps: ValidateDeps & MaskDeps): void {
  app.post(
    `${apiRoot('dlq')}/messages/:id/validate`,
    {
      config: {
        access: { permission: 'dlq:messages:edit', scope: targetScope(deps.db) },
        exactJson: true,
      },
      schema: {
        operationId: 'validateMessageEdit',
        summary: 'Check an edit of a message without making it',
        description:
          'Takes the body of `…/edit` and lists what the edit would be refused for, and what a retry of the new version would meet. Changes nothing. A mask in place of a protected part gets 422, as in the edit.',
        errors: [404, 409, 422],
        hasEtag: true,
        params: IdParams,
        headers: IfMatchHeader,
        body: ValidateBody,
        response: { 200: ValidationSchema },
      },
    },
    async (request, reply) => {
      const { body, headers } = request;
      const id = parseMessageId(request.params.id);
      let changes: Changes | undefined;
      const found = await withCurrent(deps.findHead, id, () =>
        validateEdit(deps, {
          id,
          readChanges: () => (changes = readChanges({ reason: '', ...body })),
          tags: headers['if-match'] === undefined ? null : readIfMatch('dlq', headers),
          maySendTwice: body.may_send_twice === true,
        }),
      );
      if (changes !== undefined) await requireNoMask(deps, request, id, changes);
      return reply.header('etag', found.tag).send(present(id, found));
    },
  );
}

function present(id: string, { version, problems, warnings, value, target }: Validation) {
  const { topic, state, groups } = target;
  return {
    id,
    valid: problems.length === 0,
    version,
    problems: problems.map(presentProblem),
    warnings: [...warnings],
    value,
    target: { topic, state, consumer_groups: groups === null ? null : [...groups] },
  };
}

function presentProblem({ kind, code, message, details }: AppError) {
  return { status: statusOf(kind), code, message, details: [...details] };
}
