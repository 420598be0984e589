import type { FastifyRequest } from 'fastify';
import type { ErrorDetail } from '../../../kernel/errors.ts';
import { findUnsafeInput } from '../../../kernel/unsafe-input.ts';
import { HttpFault, invalidInput } from '../errors/http-fault.ts';

/**
 * Checks that no schema expresses: the query is valid percent-encoded UTF-8, PostgreSQL can store every text in the
 * URL, and a route without a schema for its query or body gets none. A missing body becomes an empty object, so that
 * the error names the missing field.
 */
export function guardInput(request: FastifyRequest): void {
  const { schema } = request.routeOptions;
  requireDecodableQuery(request.raw.url ?? '');
  const unsafe = findUnsafeInput(request.params, 'path') ?? findUnsafeInput(request.query, 'query');
  if (unsafe !== null) throw invalidInput([unsafe]);
  if (schema?.querystring === undefined) requireEmpty(request.query, 'query');
  if (schema?.body === undefined) requireEmpty(request.body, 'body');
  else request.body = request.body === undefined ? {} : request.body;
}

function requireDecodableQuery(url: string): void {
  const start = url.indexOf('?');
  if (start === -1 || !url.includes('%', start)) return;
  try {
    decodeURIComponent(url.slice(start + 1));
  } catch {
    throw new HttpFault(400, 'the query is not valid percent-encoded UTF-8');
  }
}

function requireEmpty(input: unknown, root: string): void {
  if (input === undefined) return;
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    throw invalidInput([{ field: root, reason: 'type', message: 'must be empty or an empty object' }]);
  }
  const unknown = Object.keys(input).slice(0, 8);
  if (unknown.length > 0) throw invalidInput(unknown.map(unknownField));
}

function unknownField(name: string): ErrorDetail {
  return {
    field: name.slice(0, 200).toWellFormed(),
    reason: 'additional_properties',
    message: 'is unknown',
  };
}
