import { Type } from 'typebox';
import { closed } from '../platform/http/schema-parts.ts';

const globs = (example: string) =>
  Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 249, pattern: '^[^\\s?]+$' }), {
      minItems: 1,
      maxItems: 100,
      examples: [[example]],
    }),
  );

/** Patterns of names; `*` stands for any characters. */
export const ScopeSchema = Type.Object(
  {
    topics: globs('payments.*'),
    queues: globs('payments-*'),
    destinations: globs('bank-*'),
    workflows: globs('payment-*'),
  },
  { ...closed, title: 'Scope' },
);
