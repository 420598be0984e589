import { errorResponsesOf, errorResponsesWith, headersOf, type NamedErrorStatus } from './document-parts.ts';
import { exampleOf, hasOwnExample } from './example-of.ts';
import { isObject, type Schema } from './schema-walk.ts';

type Media = Readonly<{ schema?: Schema; example?: unknown }>;
type Content = Readonly<Record<string, Media>>;
type Parameter = Readonly<{
  name: string;
  in: string;
  required?: boolean;
  schema?: Schema;
  example?: unknown;
}>;
type Response = Readonly<{ description: string; content?: Content }>;

/** An operation as the routes describe it. */
export type Operation = Readonly<{
  tags?: readonly string[];
  parameters?: readonly Parameter[];
  requestBody?: Readonly<{ required: boolean; content: Content }>;
  responses: Readonly<Record<string, Response>>;
  'x-errors'?: readonly NamedErrorStatus[];
  'x-takes-actor'?: boolean;
  'x-has-etag'?: boolean;
}>;

/** Adds what all operations share, and an example of each parameter, body and answer. */
export function completeOperation(operation: Operation): object {
  const {
    'x-errors': named = [],
    'x-takes-actor': takesActor = false,
    'x-has-etag': hasEtag = false,
    ...rest
  } = operation;
  const { parameters: own = [], requestBody, responses } = rest;
  const isProcess = operation.tags?.includes('process') === true;
  const takesKey = own.some(({ name }) => name === 'idempotency-key');
  const parameters = [...own.map(completeParameter), ...(isProcess ? [] : sharedParameters(takesActor))];
  const errors = isProcess ? errorResponsesWith(named) : errorResponsesOf(requestBody !== undefined, named);
  return {
    ...rest,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === undefined ? {} : { requestBody: completeBody(requestBody) }),
    responses: { ...completeResponses(responses, { takesKey, hasEtag }), ...errors, ...defaultOf(responses) },
  };
}

function sharedParameters(takesActor: boolean): readonly object[] {
  const names = takesActor ? ['Actor', 'RequestId'] : ['RequestId'];
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}

/** An optional parameter is sent in the example only if somebody wrote one for it. */
function completeParameter(parameter: Parameter): Parameter {
  const { schema, required = false } = parameter;
  if (schema === undefined || 'example' in parameter) return parameter;
  const example = required || hasOwnExample(schema) ? exampleOf(schema) : undefined;
  return example === undefined ? parameter : { ...parameter, example };
}

/** A body is optional if it needs no field. */
function completeBody({ content }: NonNullable<Operation['requestBody']>): object {
  return {
    required: Object.values(content).some(({ schema }) => schema !== undefined && needsFields(schema)),
    content: withExamples(content, (schema) => exampleOf(withoutNull(schema))),
  };
}

function needsFields(schema: Schema): boolean {
  const { required, anyOf, oneOf, allOf, type } = schema;
  if (type !== 'object') return false;
  return (Array.isArray(required) && required.length > 0) || (anyOf ?? oneOf ?? allOf) !== undefined;
}

/** The example of an optional body is its object, not null. */
function withoutNull(schema: Schema): Schema {
  const variants = Array.isArray(schema.anyOf) ? schema.anyOf.filter(isObject) : [];
  return variants.find(({ type }) => type === 'object') ?? schema;
}

function completeResponses(
  responses: Operation['responses'],
  has: Readonly<{ takesKey: boolean; hasEtag: boolean }>,
): object {
  const isReplay = '201' in responses || '202' in responses;
  const completed = Object.entries(responses)
    .filter(([status]) => status !== 'default')
    .map(([status, { content, ...response }]) => [
      status,
      {
        ...response,
        description: describe(status, response.description, isReplay),
        headers: headersOf(status, has),
        ...(content === undefined ? {} : { content: withExamples(content, exampleOf) }),
      },
    ]);
  return Object.fromEntries(completed) as object;
}

function describe(status: string, description: string, isReplay: boolean): string {
  if (description !== 'Default Response') return description;
  if (status === '200') return isReplay ? 'An earlier request had the same key: its item.' : 'Success.';
  return status === '201' ? 'Created.' : 'Accepted.';
}

function withExamples(content: Content, make: (schema: Schema) => unknown): Content {
  const completed = Object.entries(content).map(([type, media]) => {
    const example = media.schema === undefined || 'example' in media ? undefined : make(media.schema);
    return [type, example === undefined ? media : { ...media, example }];
  });
  return Object.fromEntries(completed) as Content;
}

function defaultOf({ default: any }: Operation['responses']): object {
  return any === undefined ? {} : { default: any };
}
