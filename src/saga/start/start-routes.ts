import type { IncomingHttpHeaders } from 'node:http';
import { Type, type TSchema } from 'typebox';
import { creatorOf, isAllowed } from '../../kernel/access/principal.ts';
import { scopeOfBody } from '../../platform/http/access/item-scope.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { checkedAs, closed } from '../../platform/http/schema-parts.ts';
import { traceparentOf } from '../../platform/http/traceparent.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { invalidInput } from '../saga-errors.ts';
import { MAX_NAME_LENGTH, SagaId } from '../schemas.ts';
import { startSaga } from './start-saga.ts';

export function addStartRoutes(app: HttpApp, db: Queryable): void {
  app.post(
    '/api/v1/sagas',
    {
      config: {
        access: { permission: 'saga:sagas:start', scope: scopeOfBody('workflows', 'workflow_name') },
        exactJson: true,
      },
      schema: {
        operationId: 'startSaga',
        summary: 'Start a saga',
        description:
          'With an `idempotency-key`, repeating the request returns the saga that the first one started. 409 if another caller used the key first and this one may not see that saga.',
        errors: [404, 409, 422],
        headers: KeyHeaders,
        body: NewSagaBody,
        response: { 200: StartedSchema, 201: StartedSchema },
      },
    },
    async (request, reply) => {
      const { body, principal } = request;
      const { sagaId, isReplayed } = await startSaga(db, {
        workflowName: body.workflow_name,
        // `exactJson` has checked that no number loses precision, so serializing again loses nothing.
        payloadText: body.payload === undefined ? null : JSON.stringify(body.payload),
        correlationId: body.correlation_id ?? null,
        initiatedBy: body.initiated_by ?? null,
        key: readIdempotencyKey(request.headers),
        trace: traceparentOf(request),
        hash: body.definition_hash ?? null,
        createdBy: creatorOf(principal),
        maySee: isAllowed(principal, 'saga:sagas:view', { workflows: [body.workflow_name] }),
      });
      // A replay repeats the first response, whatever the saga's status is now.
      const answer = { saga_id: sagaId, status: 'STARTED' };
      if (isReplayed) return reply.header('idempotent-replayed', 'true').send(answer);
      return reply.code(201).send(answer);
    },
  );
}

const KEY_PATTERN = '^[!-~]{1,255}$';
const keyPattern = new RegExp(KEY_PATTERN);

/** Node joins a header that was sent twice with a comma and a space, which no key contains. */
function readIdempotencyKey(headers: IncomingHttpHeaders): string | null {
  const text = headers['idempotency-key'];
  if (text === undefined) return null;
  if (typeof text === 'string' && keyPattern.test(text)) return text;
  throw invalidInput('idempotency-key', 'format', 'must be 1 to 255 visible ASCII characters');
}

const KeyHeaders = Type.Object({
  'idempotency-key': Type.Optional(
    Type.String({
      description: 'If this key was used before for this workflow, the response is the saga it started.',
      examples: ['order-7'],
      ...checkedAs({ minLength: 1, maxLength: 255, pattern: KEY_PATTERN }),
    }),
  ),
});

const nameLimits = { minLength: 1, maxLength: MAX_NAME_LENGTH };

const NewSagaBody = Type.Object(
  {
    workflow_name: Type.String({ ...nameLimits, examples: ['buy'] }),
    payload: Type.Optional(
      Type.Object(
        {},
        {
          description: 'The input of its steps, which may map parts of it.',
          examples: [{ sku: 'shoe', qty: 1 }],
        },
      ),
    ),
    correlation_id: Type.Optional(Type.String({ ...nameLimits, examples: ['order-7'] })),
    initiated_by: Type.Optional(Type.String({ ...nameLimits, description: 'The calling service.' })),
    definition_hash: Type.Optional(
      Type.String({
        pattern: '^sha256:[0-9a-f]{64}$',
        description:
          'The definition to start with; by default the current one. 409 if it is not registered for this workflow.',
      }),
    ),
  },
  closed,
);

const StartedSchema: TSchema = Type.Object({ saga_id: SagaId, status: Type.Literal('STARTED') });
