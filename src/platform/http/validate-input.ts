import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { invalidInput } from './http-fault.ts';
import { coerceTexts } from './query-coercion.ts';
import { validationDetails } from './validation-details.ts';

/** How each part of a request is called in an error that concerns the whole of it. */
const rootNames: Readonly<Record<string, string>> = {
  body: 'body',
  querystring: 'query',
  params: 'path',
  headers: 'headers',
};

/**
 * Validates by the route's typebox schemas. Only texts from the URL change their type; nothing is removed,
 * nothing is filled in, so what a handler reads is what was sent.
 */
export const validateInput: FastifySchemaCompiler<TSchema> = ({ schema, httpPart = 'body' }) => {
  const validator = Compile(schema);
  const root = rootNames[httpPart] ?? httpPart;
  const isFromUrl = httpPart === 'querystring' || httpPart === 'params';
  return (input: unknown) => {
    const value = isFromUrl ? coerceTexts(input, schema) : input;
    if (validator.Check(value)) return { value };
    return { error: invalidInput(validationDetails(validator.Errors(value), root)) };
  };
};
