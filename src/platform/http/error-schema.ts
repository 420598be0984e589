import { Type } from 'typebox';

/** The body of every error, as a named component of the API's description. */
export const ErrorBodySchema = Type.Object(
  {
    error: Type.Object({
      code: Type.String({ description: 'What programs check: `SYS_<SLICE>_<NAME>`.' }),
      message: Type.String({ description: 'What people read; its wording may change.' }),
      request_id: Type.String(),
      details: Type.Array(
        Type.Object({ field: Type.String(), reason: Type.String(), message: Type.String() }),
      ),
    }),
  },
  { $id: 'ErrorBody', title: 'ErrorBody' },
);

/** Any status that a route does not describe itself. */
export const errorResponse = {
  description: 'An error; `error.code` tells which.',
  content: { 'application/json': { schema: { $ref: 'ErrorBody#' } } },
} as const;
