import { operations, type OperationId } from '../../client-http/index.ts';
import type { ApiCall } from '../api/api-client.ts';
import { UsageError } from '../exit-code.ts';
import { nameOf, type Input, type Value, type Values } from './define-command.ts';

/** A route as in the OpenAPI document: `POST /api/v1/outbox/orders/{id}/cancel`. */
export type Route = `${'GET' | 'POST' | 'PATCH' | 'DELETE'} /api/v1/${string}`;

const parameter = /\{(\w+)\}/g;

/** The operations by their route, whatever their parameters are called. */
const idByRoute: ReadonlyMap<string, OperationId> = new Map(
  Object.entries(operations).map(([id, { method, path }]) => [
    `${method} ${path}`.replaceAll(parameter, '{}'),
    id as OperationId,
  ]),
);

/** The API call that a command's arguments and options describe. */
export function requestOf(route: Route, inputs: readonly Input[], values: Values): ApiCall {
  const id = idByRoute.get(route.replaceAll(parameter, '{}'));
  if (id === undefined) throw new Error(`the API has no operation ${route}`);
  const inPath = namesIn(route);
  const pathFields = namesIn(operations[id].path).map(
    (name, i) => [name, pathValue(inPath[i] ?? name, values)] as const,
  );
  const sent = inputs.filter((input) => input.field !== null && !inPath.includes(nameOf(input)));
  const fields = sent.map((input) => [fieldOf(input), values[nameOf(input)]] as const);
  return { id, input: Object.fromEntries([...pathFields, ...fields]), ...keyOf(inputs, values) };
}

function namesIn(path: string): readonly string[] {
  return [...path.matchAll(parameter)].map(([, name = '']) => name);
}

/** The client refuses these, because URLs with them lead elsewhere. */
function pathValue(name: string, values: Values): string {
  const text = String(values[name]);
  if (text === '' || text === '.' || text === '..')
    throw new UsageError(`${name} must not be ${text === '' ? 'empty' : `"${text}"`}`);
  return text;
}

function fieldOf(input: Input): string {
  return input.field ?? nameOf(input).replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The header `idempotency-key`, if an option sets it. */
function keyOf(inputs: readonly Input[], values: Values): Pick<ApiCall, 'idempotencyKey'> {
  const input = inputs.find(({ header }) => header === 'idempotency-key');
  const value = input === undefined ? undefined : values[nameOf(input)];
  return input === undefined || value === undefined ? {} : { idempotencyKey: headerValue(input, value) };
}

function headerValue({ flags }: Input, value: Value): string {
  const text = String(value);
  if (/^[!-~]+$/.test(text)) return text;
  const [name] = flags.split(' ');
  throw new UsageError(`${name} is sent as an HTTP header: only visible ASCII characters are allowed`);
}
