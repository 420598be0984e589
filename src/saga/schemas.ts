import { Type } from 'typebox';
import { Uuid } from '../platform/http/schema-parts.ts';
import { statuses } from './domain/saga-state.ts';

/** Schemas that the routes of several flows share; the OpenAPI document is generated from them. */

/** Of the columns for names. Both JSON Schema and PostgreSQL count code points. */
export const MAX_NAME_LENGTH = 255;

export const Name = Type.String({ minLength: 1, maxLength: MAX_NAME_LENGTH });
export const SagaId = Type.String({ format: 'uuid' });
export const StatusSchema = Type.Enum([...statuses]);
export const Action = Type.Enum(['EXECUTE', 'COMPENSATE']);

/** `readSagaId` checks it. */
export const sagaIdParameter = { saga_id: Uuid };
export const SagaParams = Type.Object(sagaIdParameter);
