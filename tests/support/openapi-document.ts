import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

/** The API description of the repository; `approved.test.ts` compares it with the server's. */

export type Media = Readonly<{ schema?: object; example?: unknown }>;
export type Content = Readonly<Record<string, Media>>;
export type Parameter = Readonly<{
  name: string;
  in: 'path' | 'query' | 'header';
  required?: boolean;
  schema: object;
  example?: unknown;
}>;
export type ApiResponse = Readonly<{ description: string; content?: Content; headers?: object }>;
export type Operation = Readonly<{
  operationId?: string;
  summary?: string;
  description?: string;
  tags?: readonly string[];
  parameters?: readonly Parameter[];
  requestBody?: Readonly<{ required: boolean; content: Content }>;
  responses: Readonly<Record<string, ApiResponse>>;
}>;

/** An operation and where it is: its method, its path, and the JSON pointer to it. */
export type Placed = Readonly<{ method: string; path: string; pointer: string; operation: Operation }>;

export type ApiDocument = Readonly<{
  components: Readonly<Record<string, Readonly<Record<string, object>>>>;
  paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}>;

export const documentFile = new URL('../../docs/openapi.json', import.meta.url);

export const apiDocument = JSON.parse(readFileSync(documentFile, 'utf8')) as ApiDocument;

const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false });
addFormats.default(ajv);
ajv.addSchema(close(apiDocument) as object, 'document');

/** Schemas of answers allow more fields, for later versions; here a field that is not documented is a mistake. */
function close(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(close);
  if (typeof part !== 'object' || part === null) return part;
  const closed = Object.fromEntries(Object.entries(part).map(([key, inner]) => [key, close(inner)]));
  const { type, properties = {} } = part as Readonly<{ type?: unknown; properties?: object }>;
  // The description of the description is only its first field.
  const isOpen = type === 'object' && Object.keys(properties).length > 0 && !('openapi' in properties);
  return isOpen ? { additionalProperties: false, ...closed } : closed;
}

/** Follows a reference to a component. */
export function resolve<T extends object>(part: T): T {
  const { $ref } = part as Readonly<{ $ref?: string }>;
  if ($ref === undefined) return part;
  const [, , kind = '', name = ''] = $ref.split('/');
  const found = apiDocument.components[kind]?.[name];
  assert.ok(found, `${$ref} refers to nothing`);
  return found as T;
}

export const operations: readonly Placed[] = Object.entries(apiDocument.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({
    method,
    path,
    pointer: `/paths/${escape(path)}/${method}`,
    operation: {
      ...operation,
      parameters: (operation.parameters ?? []).map((parameter) => resolve(parameter)),
    },
  })),
);

/** Fails unless the value is valid against the schema at the pointer. */
export function assertValid(value: unknown, pointer: readonly string[], about: string): void {
  const [base = '', ...rest] = pointer;
  const validate = ajv.getSchema(`document#${base}${rest.map((part) => `/${escape(part)}`).join('')}`);
  assert.ok(validate, `${about}: there is no schema`);
  const isValid = validate(value);
  assert.ok(isValid, `${about}: ${ajv.errorsText(validate.errors)}: ${JSON.stringify(value)}`);
}

/** Fails unless the answer has a documented status and a body that is valid for it. */
export function assertDocumented(
  { pointer, operation }: Placed,
  status: number,
  body: unknown,
  about: string,
): void {
  const response = operation.responses[String(status)];
  assert.ok(response, `${about}: HTTP ${status} is not documented: ${JSON.stringify(body)}`);
  const { $ref } = response as Readonly<{ $ref?: string }>;
  const at = $ref === undefined ? [pointer, 'responses', String(status)] : [$ref.slice(1)];
  if (resolve(response).content?.['application/json'] === undefined) return;
  assertValid(body, [...at, 'content', 'application/json', 'schema'], about);
}

function escape(part: string): string {
  return part.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D');
}
