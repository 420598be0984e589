import { Type, type TSchema } from 'typebox';
import { statuses } from './domain/saga-state.ts';

/** Schemas that the routes of several flows share; the OpenAPI document is generated from them. */

/** Of the columns for names. Both JSON Schema and PostgreSQL count code points. */
export const MAX_NAME_LENGTH = 255;

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
/** Unknown fields are errors, so that a misspelt one is not ignored. */
export const closed = { additionalProperties: false } as const;
export const Name = Type.String({ minLength: 1, maxLength: MAX_NAME_LENGTH });
export const Timestamp = Type.String({ format: 'date-time', examples: ['2026-02-20T10:30:00.000+00:00'] });
export const SagaId = Type.String({ format: 'uuid' });
export const StatusSchema = Type.Enum([...statuses]);
export const Action = Type.Enum(['EXECUTE', 'COMPENSATE']);

/** A string, not a UUID: `readSagaId` checks it. */
export const sagaIdParameter = { saga_id: Type.String({ maxLength: 1000, description: 'A UUID.' }) };
export const SagaParams = Type.Object(sagaIdParameter);
