import { Type, type TSchema } from 'typebox';

/** Parts that the route schemas of all slices share. */

export const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);

/** Rejects unknown fields, so that a misspelt one is reported instead of ignored. */
export const closed = { additionalProperties: false } as const;

export const Timestamp = Type.String({
  format: 'date-time',
  examples: ['2026-02-20T10:30:00.000+00:00'],
});

/** An input timestamp; `readInstantField` checks it. */
export const Instant = Type.String({ maxLength: 64, description: 'ISO 8601 with its zone.' });

/** Why a person acts. */
export const Reason = Type.String({ minLength: 1, maxLength: 1000, pattern: '\\S' });
