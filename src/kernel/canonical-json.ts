import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import library from 'canonicalize';

/** The types of 2.1 describe an ES module, but it is CommonJS: what is imported is the function itself. */
const canonicalize = library as unknown as (value: unknown) => string | undefined;

/** A lone surrogate, as JSON.stringify escapes it. */
const loneSurrogate = /(?<!\\)(?:\\\\)*\\ud[89a-f]/;

/**
 * A JSON value as RFC 8785 writes it: one text for all spellings of one value. Throws for what JSON cannot hold
 * or what has no one spelling: NaN, infinities, lone surrogates, undefined. It recurses, so the caller checks that the
 * value is nested no deeper than MAX_DEPTH.
 */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value);
  assert(text !== undefined, 'a value without a JSON form has no canonical one');
  assert(!loneSurrogate.test(text), 'a lone surrogate has no canonical form');
  return text;
}

/** Of a text its UTF-8 bytes: `sha256:<hex>`. */
export function sha256Of(content: string | Buffer): string {
  return `sha256:${hash('sha256', content)}`;
}
