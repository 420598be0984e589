import type { IncomingMessage } from 'node:http';
import { parseExactJson } from '../../kernel/exact-json.ts';
import { findUnsafeInput } from '../../kernel/unsafe-input.ts';
import type { HttpApp } from './http-app.ts';
import { HttpFault, invalidInput } from './http-fault.ts';

/**
 * The only kind of body that the API reads. An empty body is no body, whatever its content type says; a body
 * that is there must be JSON and say so. A route that keeps what it is sent asks for exact JSON: there, what
 * JSON.parse would drop or round without a word is refused.
 */
export function acceptJsonBodies(app: HttpApp): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => {
    const parse = request.routeOptions.config.exactJson === true ? parseExact : parseSafe;
    try {
      done(null, parseBody(body as Buffer, request.headers['content-type'], parse));
    } catch (error) {
      done(error as HttpFault, undefined);
    }
  });
}

/**
 * Fastify refuses a malformed content type even where there is no body. Called before it looks, this gives such
 * a request a type that is merely not JSON, and the parser above decides.
 */
export function normaliseContentType({ headers }: IncomingMessage): void {
  const type = headers['content-type'];
  if (type !== undefined && !/^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+\s*(?:;|$)/.test(type)) {
    headers['content-type'] = 'application/octet-stream';
  }
}

function parseBody(
  bytes: Buffer,
  contentType: string | undefined,
  parse: (text: string) => unknown,
): unknown {
  if (bytes.length === 0) return undefined;
  const mediaType = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (mediaType !== 'application/json' && !/^application\/[\w.-]+\+json$/.test(mediaType)) {
    throw new HttpFault(415, 'the body must be JSON: content-type application/json');
  }
  return parse(decode(bytes));
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
