import { Type } from 'typebox';
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
