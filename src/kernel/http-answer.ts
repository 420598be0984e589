import { retryAfterMs } from './backoff.ts';
import { cleanText } from './text.ts';

/** What came back over HTTP. */
export type HttpAnswer = Readonly<{
  status: number;
  /** By their names in lower case. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  body: Buffer;
  /** There was more of the body than was read. */
  isBodyCut: boolean;
}>;

const MAX_RETRY_AFTER_MS = 3_600_000;
const MAX_DETAIL_CHARACTERS = 200;

/** What a body says if it is JSON: the value, and the text that it came from. */
export type JsonBody = Readonly<{ value: unknown; text: string }>;

/** Also with a byte order mark, which some servers send; undefined for everything that is not JSON in UTF-8. */
export function readJsonBody(body: Buffer): JsonBody | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    return { value: JSON.parse(text), text };
  } catch {
    return undefined;
  }
}

/** `HTTP 500: <the beginning of the body>`, on one line. */
export function describeAnswer({ status, body }: HttpAnswer, flaw?: string): string {
  const head = flaw === undefined ? `HTTP ${status}` : `HTTP ${status}, ${flaw}`;
  const said = cleanText(body, 4 * MAX_DETAIL_CHARACTERS)
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  const start = said.slice(0, MAX_DETAIL_CHARACTERS).toWellFormed();
  return start === '' ? head : `${head}: ${start}`;
}

/** How long the other side wants to be left alone, an hour at most. Of several wishes the longest. */
export function askedWaitMs({ headers }: HttpAnswer, now: Date): number | undefined {
  const waits = [headers['retry-after'] ?? []]
    .flat()
    .map((text) => retryAfterMs(text, now, MAX_RETRY_AFTER_MS))
    .filter((wait) => wait !== undefined);
  return waits.length === 0 ? undefined : Math.max(...waits);
}
