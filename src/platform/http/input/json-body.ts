import type { IncomingMessage } from 'node:http';
import { parseExactJson } from '../../../kernel/exact-json.ts';
import { jsonExtent, MAX_JSON_BYTES } from '../../../kernel/json-extent.ts';
import { findUnsafeInput, MAX_DEPTH, tooDeep } from '../../../kernel/unsafe-input.ts';
import type { HttpApp } from '../http-app.ts';
import { HttpFault, invalidInput } from '../errors/http-fault.ts';

/**
 * Accepts only JSON bodies. An empty body counts as none, whatever its content type. With `exactJson`, which routes set
 * that store the body, JSON that JSON.parse would change silently is rejected.
 */
export function acceptJsonBodies(app: HttpApp, bodyBytes: number): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => {
    const parse = request.routeOptions.config.exactJson === true ? parseExact : parseSafe;
    try {
      requireIdentity(request.headers['content-encoding'], body as Buffer);
      const text = textOf(body as Buffer, request.headers['content-type']);
      if (text !== undefined) requireExtent(text, bodyBytes);
      done(null, text === undefined ? undefined : parse(text));
    } catch (error) {
      done(error as HttpFault, undefined);
    }
  });
}

/**
 * Fastify rejects a malformed content type even without a body. This replaces it by a type that is not JSON, so that the
 * parser above decides.
 */
export function normaliseContentType({ headers }: IncomingMessage): void {
  const type = headers['content-type'];
  if (type !== undefined && !/^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+\s*(?:;|$)/.test(type)) {
    headers['content-type'] = 'application/octet-stream';
  }
}

/** Bodies are never decompressed: a small one could become huge. */
function requireIdentity(encoding: string | undefined, bytes: Buffer): void {
  if (bytes.length === 0 || encoding === undefined || /^\s*(identity)?\s*$/i.test(encoding)) return;
  throw new HttpFault(415, 'the body must not be compressed: no content-encoding is accepted', {
    headers: { 'accept-encoding': 'identity' },
  });
}

function textOf(bytes: Buffer, contentType: string | undefined): string | undefined {
  if (bytes.length === 0) return undefined;
  const mediaType = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (mediaType !== 'application/json' && !/^application\/[\w.-]+\+json$/.test(mediaType)) {
    throw new HttpFault(415, 'the body must be JSON: content-type application/json');
  }
  return decode(bytes);
}

/**
 * Runs before parsing: deep nesting costs time, and numbers grow when PostgreSQL writes them without exponents. jsonb
 * text also has blanks, at most one per byte, so half the limit is enough for PostgreSQL to accept it.
 */
function requireExtent(text: string, bodyBytes: number): void {
  const maxBytes = Math.min(bodyBytes, MAX_JSON_BYTES / 2);
  const { depth, bytes } = jsonExtent(text, MAX_DEPTH);
  if (depth > MAX_DEPTH) throw invalidInput([tooDeep('body')]);
  if (bytes <= maxBytes) return;
  const message = `it takes ${bytes} bytes with its numbers written without exponents; the limit is ${maxBytes}`;
  throw new HttpFault(413, `the body is too large: ${message}`, {
    details: [{ field: 'body', reason: 'written_size', message }],
  });
}

function decode(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new HttpFault(400, 'the body is not valid UTF-8');
  }
}

function parseSafe(text: string): unknown {
  const value = parseJson(text);
  const unsafe = findUnsafeInput(value, 'body');
  if (unsafe !== null) throw invalidInput([unsafe]);
  return value;
}

function parseExact(text: string): unknown {
  const exact = parseExactJson(text);
  if (!exact.ok) throw invalidInput([exact.flaw]);
  return exact.value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new HttpFault(400, 'the body is not valid JSON');
  }
}
