import type { IncomingHttpHeaders } from 'node:http';
import { Type } from 'typebox';
import { AppError } from '../../kernel/errors.ts';
import { checkedAs } from './schema-parts.ts';
import { invalidField } from './slice-input.ts';

/**
 * Optimistic locking: an item is read with the entity tag of its state, and changed only if it still has that tag. An
 * action that needs it is refused without the header (428) and with the tag of an earlier state (412).
 */
export function entityTagOf(...parts: readonly (number | bigint)[]): string {
  return `"${parts.join('-')}"`;
}

const TAG = '(?:W/)?"[\\x21\\x23-\\x7e]*"';
const LIST = `^[ \\t]*${TAG}(?:[ \\t]*,[ \\t]*${TAG})*[ \\t]*$`;
const tags = new RegExp(TAG, 'g');
const list = new RegExp(LIST);

export const IfMatchHeaders = Type.Object({
  'if-match': Type.Optional(
    Type.String({
      description: 'Required: the `ETag` with which the item was read.',
      examples: ['"0-42"'],
      ...checkedAs({ pattern: LIST }),
    }),
  ),
});

/** The tags of `If-Match`. `*` is not accepted: it would change the item in whatever state it is. */
export function readIfMatch(slice: string, headers: IncomingHttpHeaders): readonly string[] {
  const text = headers['if-match'];
  if (text === undefined)
    throw new AppError(
      `SYS_${slice.toUpperCase()}_PRECONDITION_REQUIRED`,
      'precondition_required',
      'the header If-Match is missing: send the ETag with which the item was read',
    );
  if (!list.test(text))
    throw invalidField(slice, 'if-match', 'format', 'must be the ETag of the item, in double quotes');
  return text.match(tags) ?? [];
}

/** The item has changed since it was read. */
export function staleTag(slice: string, what: string, now: string): AppError {
  return new AppError(
    `SYS_${slice.toUpperCase()}_PRECONDITION_FAILED`,
    'precondition_failed',
    `the ${what} has changed since it was read: its ETag is now ${now}`,
    { details: [{ field: 'if-match', reason: 'stale', message: `is not ${now}` }] },
  );
}
