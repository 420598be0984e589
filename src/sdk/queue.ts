import { messageOf } from '../kernel/errors.ts';
import { isQueueName } from '../jobs/domain/queue-settings.ts';

/** The part of Standard Schema (version 1) that we use; Zod, Valibot, ArkType, TypeBox and others implement it. */
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

/** Validates a payload: a Standard Schema, or a function that returns the payload or throws. */
export type PayloadSchema<Input = unknown, Output = Input> =
  | StandardSchema<Input, Output>
  | ((payload: unknown) => Output | Promise<Output>);

/** A queue with the type of its payloads: `Input` when jobs are added, `Output` when they are handled. */
export type Queue<Input = unknown, Output = Input> = Readonly<{
  name: string;
  schema: PayloadSchema<Input, Output> | null;
}>;

/**
 * Defines a queue and the type of its payloads, for code that adds jobs and code that handles them. With a schema,
 * payloads are validated when a job is added and again before it is handled; without one, the type is not checked.
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
    `a queue name is a lower-case letter and up to 99 more of a-z, 0-9, "_", "." and "-", not ${JSON.stringify(name)?.slice(0, 120) ?? typeof name}`,
  );
}

export type ReadPayload<Output> =
  | Readonly<{ ok: true; payload: Output }>
  | Readonly<{ ok: false; reason: string }>;

/** Validates a payload with the schema of its queue. */
export async function readPayload<Input, Output>(
  { schema }: Queue<Input, Output>,
  payload: unknown,
): Promise<ReadPayload<Output>> {
  if (schema === null) return { ok: true, payload: payload as Output };
  // A Standard Schema may also be a function.
  if (isStandard(schema)) {
    const result = await schema['~standard'].validate(payload);
    if (result.issues === undefined) return { ok: true, payload: result.value };
    return { ok: false, reason: result.issues.slice(0, 5).map(describeIssue).join('; ') };
  }
  try {
    return { ok: true, payload: await schema(payload) };
  } catch (error) {
    return { ok: false, reason: messageOf(error) };
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
