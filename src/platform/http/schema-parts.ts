import { Type, type TSchema } from 'typebox';
import { INSTANT_PATTERN } from '../../kernel/read-instant.ts';
import { UUID_PATTERN } from '../../kernel/uuid.ts';

/** Parts that the route schemas of all slices share. */

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** Rejects unknown fields, so that a misspelt one is reported instead of ignored. */
export const closed = { additionalProperties: false } as const;

export const Timestamp = Type.String({ format: 'date-time' });

export const AsOf = {
  ...Timestamp,
  description: 'The time of the database when it was read: the answer is at least as new.',
};

/**
 * What the handler checks, because its error says more than a validator's. The API description shows these keywords
 * in place of the schema's own.
 */
export const checkedAs = (keywords: Readonly<Record<string, unknown>>) => ({ 'x-checked': keywords });

/** An id in a path or a body; `readUuidField` checks it. */
export const Uuid = Type.String({
  maxLength: 1000,
  description: 'A UUID.',
  ...checkedAs({ format: 'uuid', pattern: UUID_PATTERN, maxLength: 36 }),
});

/** An input timestamp; `readInstantField` checks it. */
export const Instant = Type.String({
  maxLength: 64,
  description: 'ISO 8601 with its zone.',
  ...checkedAs({ pattern: INSTANT_PATTERN }),
});

/** Of an item: something in it is not shown. */
export const Masked = Type.Optional(
  Type.Literal(true, { description: 'Parts are `[masked]`: see `…/reveal`.' }),
);

/** Why a person acts. */
export const Reason = Type.String({
  minLength: 1,
  maxLength: 1000,
  pattern: '\\S',
  examples: ['the partner confirmed it by phone'],
});
