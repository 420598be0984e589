/**
 * Lists are read in one of two ways. By page number, which costs the database the rows that it skips, so it is
 * bounded. Or by keyset: a cursor names the last row seen, and the next page costs the same however deep it is.
 * A list is read by keyset as soon as `cursor` is sent; an empty cursor asks for the first page that way.
 */
export const MAX_PAGE = 1_000_000;
export const MAX_PAGE_SIZE = 100;
export const DEFAULT_PAGE_SIZE = 20;
export const MAX_CURSOR_LENGTH = 1024;

const MAX_CURSOR_TEXT_LENGTH = 255;
const CURSOR_VERSION = 1;

/** What a value in a cursor may be; whatever decodes is safe to bind to a parameter of that SQL type. */
export type CursorValueKind = 'timestamp' | 'uuid' | 'bigint' | 'text';
export type CursorShape = readonly CursorValueKind[];

/** The key of lists ordered by creation: `created_at` in UTC at full precision, then `id`. */
const CREATED_AT_AND_ID: CursorShape = ['timestamp', 'uuid'];

export type PageQuery = Readonly<{
  page?: number | undefined;
  page_size?: number | undefined;
  cursor?: string | undefined;
}>;

export type PageRequest =
  | Readonly<{ by: 'number'; page: number; pageSize: number; offset: number }>
  | Readonly<{ by: 'keyset'; page: number; pageSize: number; after: readonly string[] | null }>;

/** What the query asks for, with the defaults filled in; null when its cursor is not one of ours. */
export function readPage(query: PageQuery, shape: CursorShape = CREATED_AT_AND_ID): PageRequest | null {
  const page = query.page ?? 1;
  const pageSize = query.page_size ?? DEFAULT_PAGE_SIZE;
  if (query.cursor === undefined) return { by: 'number', page, pageSize, offset: (page - 1) * pageSize };
  if (query.cursor === '') return { by: 'keyset', page, pageSize, after: null };
  const after = decodeCursor(query.cursor, shape);
  return after === null ? null : { by: 'keyset', page, pageSize, after };
}

/** An opaque text for the values of the last row's key, in the order of its shape. */
export function encodeCursor(values: readonly string[]): string {
  return Buffer.from(JSON.stringify([CURSOR_VERSION, ...values])).toString('base64url');
}

/** The values of a cursor of this shape, or null for any other text: it never throws, whatever was sent. */
export function decodeCursor(text: string, shape: CursorShape = CREATED_AT_AND_ID): readonly string[] | null {
  if (text.length > MAX_CURSOR_LENGTH || !/^[A-Za-z0-9_-]+$/.test(text)) return null;
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.toString('base64url') !== text) return null;
  const parts = parseJson(bytes.toString('utf8'));
  if (!Array.isArray(parts) || parts.length !== shape.length + 1) return null;
  const [version, ...values] = parts as unknown[];
  if (version !== CURSOR_VERSION) return null;
  const isOfShape = shape.every((kind, index) => {
    const value = values[index];
    return typeof value === 'string' && isCursorValue[kind](value);
  });
  return isOfShape ? (values as string[]) : null;
}

export type Pagination = Readonly<{
  total_count: number;
  page: number;
  page_size: number;
  has_next: boolean;
  next_cursor?: string | null;
  total_is_estimate?: true;
}>;

export type PaginationFacts = Readonly<{
  total: number;
  isEstimate?: boolean;
  page: number;
  pageSize: number;
  /** Told by a list that read one row more than it shows; otherwise it follows from the total. */
  hasNext?: boolean;
  /** Only for a list read by keyset: the cursor of the next page, null on the last one. */
  nextCursor?: string | null;
}>;

export function paginationOf(facts: PaginationFacts): Pagination {
  const hasNext =
    facts.nextCursor === undefined
      ? (facts.hasNext ?? facts.page * facts.pageSize < facts.total)
      : facts.nextCursor !== null;
  return {
    total_count: facts.total,
    page: facts.page,
    page_size: facts.pageSize,
    has_next: hasNext,
    ...(facts.nextCursor === undefined ? {} : { next_cursor: facts.nextCursor }),
    ...(facts.isEstimate === true ? { total_is_estimate: true } : {}),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isCursorValue: Readonly<Record<CursorValueKind, (value: string) => boolean>> = {
  timestamp: isUtcTimestamp,
  uuid: (value) => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value),
  bigint: (value) => /^(?:0|-?[1-9]\d{0,17})$/.test(value),
  text: (value) => value.length <= MAX_CURSOR_TEXT_LENGTH && value.isWellFormed() && !value.includes('\0'),
};

/** PostgreSQL's own text of a `timestamptz` in UTC, or ISO 8601; down to the microsecond, and a real date, or none at all. */
function isUtcTimestamp(text: string): boolean {
  if (text === 'infinity' || text === '-infinity') return true;
  const match = /^(\d{4,6})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:\.\d{1,6})?(?:Z|\+00(?::?00)?)$/.exec(
    text,
  );
  if (match === null) return false;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match.slice(1).map(Number);
  const date = new Date(0);
  date.setUTCFullYear(year % 400 === 0 ? 400 : year % 400, month - 1, day);
  const isRealDay = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return year >= 1 && year <= lastYear && isRealDay && hour < 24 && minute < 60 && second < 60;
}

/** Of PostgreSQL. The calendar repeats itself every 400 years, so a Date knows the days of all of them. */
const lastYear = 294_275;
