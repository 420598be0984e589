import type { ApiCall } from '../api/api-client.ts';
import { UsageError } from '../exit-code.ts';
import { nameOf, type Input, type Value, type Values } from './define-command.ts';

/** A route as in the OpenAPI document: `POST /api/v1/outbox/orders/{id}/cancel`. */
export type Route = `${'GET' | 'POST' | 'DELETE'} /api/v1/${string}`;

/** The API call that a command's arguments and options describe: GET and DELETE send them as query, POST as body. */
export function requestOf(route: Route, inputs: readonly Input[], values: Values): ApiCall {
  const [method, template] = route.split(' ') as [NonNullable<ApiCall['method']>, string];
  const inPath = new Set<string>();
  const path = template
    .split('/')
    .slice(1)
    .map((segment) => {
      const name = /^\{(\w+)\}$/.exec(segment)?.[1];
      if (name === undefined) return segment;
      inPath.add(name);
      return String(values[name]);
    });
  const sent = inputs.filter((input) => input.field !== null && !inPath.has(nameOf(input)));
  const fields = sent.map((input) => [fieldOf(input), values[nameOf(input)]] as const);
  const headers = inputs.flatMap(({ header, ...input }) => {
    const value = values[nameOf(input)];
    return header === undefined || value === undefined ? [] : [[header, headerValue(input, value)] as const];
  });
  return {
    method,
    path,
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }),
    ...(fields.length === 0 ? {} : fieldsOf(method, fields)),
  };
}

function fieldsOf(
  method: ApiCall['method'],
  fields: readonly (readonly [name: string, value: Value])[],
): Pick<ApiCall, 'query' | 'body'> {
  if (method === 'POST') return { body: Object.fromEntries(fields) };
  const texts = fields.map(
    ([name, value]) => [name, value === undefined ? undefined : String(value)] as const,
  );
  return { query: Object.fromEntries(texts) };
}

function fieldOf(input: Input): string {
  return input.field ?? nameOf(input).replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function headerValue({ flags }: Input, value: Value): string {
  const text = String(value);
  if (/^[!-~]+$/.test(text)) return text;
  const [name] = flags.split(' ');
  throw new UsageError(`${name} is sent as an HTTP header: only visible ASCII characters are allowed`);
}
