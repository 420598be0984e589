import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';

/**
 * A JSON value as RFC 8785 writes it: one text for all spellings of one value. Throws for what JSON cannot hold
 * or what has no one spelling: NaN, infinities, lone surrogates, undefined.
 */
export function canonicalJson(value: unknown): string {
  const text = canonicalize(value);
  assert(text !== undefined, 'a value without a JSON form has no canonical one');
  return text;
}

/** Of a text its UTF-8 bytes: `sha256:<hex>`. */
export function sha256Of(content: string | Buffer): string {
  return `sha256:${hash('sha256', content)}`;
}
