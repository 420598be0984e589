import { Type, type Static } from 'typebox';
import { DEFAULT_PAGE_SIZE, MAX_CURSOR_LENGTH, MAX_PAGE, MAX_PAGE_SIZE } from '../../kernel/page.ts';

/** The query parameters of every list. */
export const pageParameters = {
  page: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE, default: 1 })),
  page_size: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PAGE_SIZE, default: DEFAULT_PAGE_SIZE })),
  cursor: Type.Optional(
    Type.String({
      maxLength: MAX_CURSOR_LENGTH,
      description: 'Empty for the first page, then `pagination.next_cursor` of the previous page.',
    }),
  ),
};

/** The query parameters of a list that can be read as lines, besides those of every list. */
export const linesParameters = {
  format: Type.Optional(
    Type.Enum(['json', 'ndjson'], {
      description:
        '`ndjson`: all items as lines of JSON, as a file to save; `page`, `page_size` and `cursor` do not apply then. `json`: a page, whatever the header `Accept`.',
    }),
  ),
};

const LinesQuerySchema = Type.Object(linesParameters);
export type LinesQuery = Static<typeof LinesQuerySchema>;

export const PaginationSchema = Type.Object({
  total_count: Type.Integer(),
  page: Type.Integer(),
  page_size: Type.Integer(),
  has_next: Type.Boolean(),
  next_cursor: Type.Optional(
    Type.Union([Type.String(), Type.Null()], { description: 'Only if `cursor` was sent.' }),
  ),
  total_is_estimate: Type.Optional(
    Type.Literal(true, { description: 'Only if `total_count` is an estimate.' }),
  ),
});
