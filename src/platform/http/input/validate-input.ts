import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { invalidInput } from '../errors/http-fault.ts';
import { coerceTexts } from './query-coercion.ts';
import { validationDetails } from './validation-details.ts';

/** Names of the request's parts in errors. */
const rootNames: Readonly<Record<string, string>> = {
  body: 'body',
  querystring: 'query',
  params: 'path',
  headers: 'headers',
};

/**
 * Validates with the route's typebox schemas. Only texts from the URL change their type. Nothing is removed and no
 * default is filled in.
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
