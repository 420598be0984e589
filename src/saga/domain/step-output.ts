import { jsonExtent } from '../../kernel/json-extent.ts';
import { MAX_DEPTH } from '../../kernel/unsafe-input.ts';

/** The largest response that is stored. */
export const MAX_OUTPUT_BYTES = 262_144;

export type Output = Readonly<{ ok: true; value: unknown }> | Readonly<{ ok: false; flaw: string }>;

/**
 * Parses a participant's response so that it can be stored and mapped: NUL and lone surrogates become U+FFFD, an empty
 * body is null. An integer that loses precision is a flaw: it is most likely an id, and the undo would use another one.
 */
export function readOutput(body: Buffer): Output {
  if (body.length <= 64 && body.toString('latin1').trim() === '') return { ok: true, value: null };
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
    const { depth, bytes } = jsonExtent(text, MAX_DEPTH);
    if (depth > MAX_DEPTH) return { ok: false, flaw: 'nested too deeply' };
    // As PostgreSQL writes it back, with every number in full.
    if (bytes > MAX_OUTPUT_BYTES) return { ok: false, flaw: 'too large' };
    JSON.parse(text);
  } catch {
    return { ok: false, flaw: 'not JSON' };
  }
  try {
    return { ok: true, value: storable(JSON.parse(text, exactNumbers as Reviver), 0) };
  } catch (error) {
    const flaw =
      error instanceof InexactNumberError ? 'with a number too large to be kept' : 'nested too deeply';
    return { ok: false, flaw };
  }
}

class InexactNumberError extends Error {}

type Reviver = (key: string, value: unknown) => unknown;

function exactNumbers(_key: string, value: unknown, { source }: Readonly<{ source?: string }>): unknown {
  if (typeof value !== 'number') return value;
  const isWhole = source !== undefined && /^-?\d+$/.test(source);
  if (!Number.isFinite(value) || (isWhole && !Number.isSafeInteger(value))) throw new InexactNumberError();
  return value;
}

function storable(value: unknown, depth: number): unknown {
  if (depth > MAX_DEPTH) throw new RangeError('nested too deeply');
  if (typeof value === 'string') return storableText(value);
  if (Array.isArray(value)) return value.map((item) => storable(item, depth + 1));
  if (typeof value !== 'object' || value === null) return value;
  const fields = Object.entries(value).map(([key, field]) => [storableText(key), storable(field, depth + 1)]);
  return Object.fromEntries(fields);
}

function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD');
}
