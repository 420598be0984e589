import { isQueueName } from '../jobs/domain/queue-settings.ts';

/**
 * The part of the Standard Schema interface (version 1) that we use; Zod, Valibot, ArkType, TypeBox and others speak
 * it.
 */
export type StandardSchema<Input = unknown, Output = Input> = Readonly<{
  '~standard': Readonly<{
    version: 1;
    vendor: string;
    validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    types?: Readonly<{ input: Input; output: Output }> | undefined;
  }>;
}>;

export type SchemaResult<Output> =
  | Readonly<{ value: Output; issues?: undefined }>
  | Readonly<{ issues: readonly SchemaIssue[] }>;

export type SchemaIssue = Readonly<{
  message: string;
  path?: readonly (PropertyKey | Readonly<{ key: PropertyKey }>)[] | undefined;
}>;

/** What reads a payload: a Standard Schema, or a function that returns it or throws. */
export type PayloadSchema<Input = unknown, Output = Input> =
  | StandardSchema<Input, Output>
  | ((payload: unknown) => Output | Promise<Output>);

/** A queue with what its jobs carry: `Input` when they are added, `Output` when they are handled. */
export type Queue<Input = unknown, Output = Input> = Readonly<{
  name: string;
  schema: PayloadSchema<Input, Output> | null;
}>;

/**
 * Names a queue and what its jobs carry, for those who add jobs and those who handle them. With a schema, payloads are
 * checked when they are added and once more before they are handled; without one, the type is only a promise.
 */
export function defineQueue<Payload = unknown>(name: string): Queue<Payload>;
export function defineQueue<Input, Output>(
  name: string,
  schema: StandardSchema<Input, Output>,
): Queue<Input, Output>;
export function defineQueue<Payload>(
  name: string,
  schema: (payload: unknown) => Payload | Promise<Payload>,
): Queue<Payload>;
export function defineQueue<Input, Output>(
  name: string,
  schema: PayloadSchema<Input, Output> | null = null,
): Queue<Input, Output> {
  return { name: requireQueueName(name), schema };
}

export function queueOf<Input, Output>(queue: string | Queue<Input, Output>): Queue<Input, Output> {
  return typeof queue === 'string'
    ? { name: requireQueueName(queue), schema: null }
    : { name: requireQueueName((queue as Queue | null | undefined)?.name), schema: queue.schema };
}

function requireQueueName(name: unknown): string {
  if (typeof name === 'string' && isQueueName(name)) return name;
  throw new TypeError(
    `a queue is named by a small letter and up to 99 more of a-z, 0-9, "_", "." and "-", not ${JSON.stringify(name)?.slice(0, 120) ?? typeof name}`,
  );
}

export type ReadPayload<Output> =
  | Readonly<{ ok: true; payload: Output }>
  | Readonly<{ ok: false; reason: string }>;

/** What a payload is to its schema. */
export async function readPayload<Input, Output>(
  { schema }: Queue<Input, Output>,
  payload: unknown,
): Promise<ReadPayload<Output>> {
  if (schema === null) return { ok: true, payload: payload as Output };
  // A schema may be a function and a Standard Schema at once.
  if (isStandard(schema)) {
    const result = await schema['~standard'].validate(payload);
    if (result.issues === undefined) return { ok: true, payload: result.value };
    return { ok: false, reason: result.issues.slice(0, 5).map(describeIssue).join('; ') };
  }
  try {
    return { ok: true, payload: await schema(payload) };
  } catch (error) {
    return { ok: false, reason: error instanceof Error ? error.message : String(error) };
  }
}

function isStandard<Input, Output>(
  schema: PayloadSchema<Input, Output>,
): schema is StandardSchema<Input, Output> {
  return '~standard' in schema;
}

function describeIssue({ message, path = [] }: SchemaIssue): string {
  const place = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
  return place === '' ? message : `${place}: ${message}`;
}
