import { Type } from 'typebox';

/** The body of every error, as a named component of the OpenAPI document. */
export const ErrorBodySchema = Type.Object(
  {
    error: Type.Object({
      code: Type.String({ description: 'Stable code for programs: `SYS_<SLICE>_<NAME>`.' }),
      message: Type.String({ description: 'Text for people; may change.' }),
      request_id: Type.String(),
      details: Type.Array(
        Type.Object({ field: Type.String(), reason: Type.String(), message: Type.String() }),
      ),
    }),
    current: Type.Optional(
      Type.Object(
        {},
        {
          description:
            'Only if the state of a dead letter is the reason: the message as it is now, without its texts.',
        },
      ),
    ),
  },
  { $id: 'ErrorBody', title: 'ErrorBody' },
);

/** For all statuses that a route does not describe. */
export const errorResponse = {
  description: 'An error; see `error.code`.',
  content: { 'application/json': { schema: { $ref: 'ErrorBody#' } } },
} as const;
