import type { IncomingHttpHeaders } from 'node:http';
import { Type, type TSchema } from 'typebox';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { traceparentOf } from '../../platform/http/traceparent.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { invalidInput } from '../saga-errors.ts';
import { closed, MAX_NAME_LENGTH, Name, SagaId } from '../schemas.ts';
import { startSaga } from './start-saga.ts';

export function addStartRoutes(app: HttpApp, db: Queryable): void {
  app.post(
    '/api/v1/sagas',
    {
      config: { exactJson: true },
      schema: {
        summary: 'Start a saga; a repeated idempotency key returns the saga it started',
        headers: KeyHeaders,
        body: NewSagaBody,
        response: { 200: StartedSchema, 201: StartedSchema },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const { sagaId, isReplayed } = await startSaga(db, {
        workflowName: body.workflow_name,
        // `exactJson` has checked that no number loses precision, so serializing again loses nothing.
        payloadText: body.payload === undefined ? null : JSON.stringify(body.payload),
        correlationId: body.correlation_id ?? null,
        initiatedBy: body.initiated_by ?? null,
        key: readIdempotencyKey(request.headers),
        trace: traceparentOf(request),
        hash: body.definition_hash ?? null,
      });
      // A replay repeats the first response, whatever the saga's status is now.
      const answer = { saga_id: sagaId, status: 'STARTED' };
      if (isReplayed) return reply.header('idempotent-replayed', 'true').send(answer);
      return reply.code(201).send(answer);
    },
  );
}

const keyPattern = /^[!-~]{1,255}$/;

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
    }),
  ),
});

const NewSagaBody = Type.Object(
  {
    workflow_name: Name,
    payload: Type.Optional(
      Type.Object({}, { description: 'The input of its steps, which may map parts of it.' }),
    ),
    correlation_id: Type.Optional(Name),
    initiated_by: Type.Optional(
      Type.String({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'The calling service.' }),
    ),
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
