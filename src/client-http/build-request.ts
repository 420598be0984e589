import { operations, type OperationId } from './generated/operations.ts';
import { serializeFields } from './json-text.ts';

export type Input = Readonly<Record<string, unknown>>;

export type OperationFacts = Readonly<{
  method: string;
  path: string;
  takesKey?: true;
  takesTag?: true;
  isText?: true;
}>;

export type BuiltRequest = Readonly<{
  method: string;
  url: URL;
  headers: Readonly<Record<string, string>>;
  body?: string;
  /** Repeating it cannot repeat its effect. */
  isRepeatable: boolean;
}>;

export type RequestContext = Readonly<{
  base: URL;
  actor: string | undefined;
  idempotencyKey: string | undefined;
  ifMatch: string | undefined;
  headers: Readonly<Record<string, string>>;
}>;

export function factsOf(id: OperationId): OperationFacts {
  return operations[id];
}

/** Puts the fields of the input where the operation has them: into the path, then the query or the body. */
export function buildRequest(id: OperationId, input: Input, context: RequestContext): BuiltRequest {
  const { method, path, takesKey = false, takesTag = false } = factsOf(id);
  const { path: encoded, rest } = fillPath(id, path, input);
  const url = new URL(context.base);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}${encoded}`;
  const hasBody = method === 'POST' || method === 'PATCH';
  if (!hasBody)
    for (const [name, value] of Object.entries(rest))
      for (const one of Array.isArray(value) ? (value as readonly unknown[]) : [value])
        if (one !== undefined) url.searchParams.append(name, textOf(one));
  const body =
    hasBody && Object.values(rest).some((value) => value !== undefined) ? serializeFields(rest) : undefined;
  const key = takesKey ? (context.idempotencyKey ?? keyIn(input)) : undefined;
  return {
    method,
    url,
    isRepeatable: method === 'GET' || key !== undefined,
    headers: {
      accept: 'application/json',
      ...context.headers,
      ...(context.actor === undefined ? {} : { 'x-actor': headerText(context.actor) }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...(takesTag && context.ifMatch !== undefined ? { 'if-match': context.ifMatch } : {}),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body }),
  };
}

function fillPath(id: OperationId, template: string, input: Input): Readonly<{ path: string; rest: Input }> {
  const rest = { ...input };
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const text = textOf(input[name]);
    delete rest[name];
    // A path with an empty, `.` or `..` segment is another path.
    if (text === '' || text === '.' || text === '..')
      throw new TypeError(`${id}: ${name} must not be ${JSON.stringify(text)}`);
    return encodeURIComponent(text);
  });
  return { path, rest };
}

/** Orders have their key in the body too. */
function keyIn({ idempotency_key: key }: Input): string | undefined {
  return typeof key === 'string' ? key : undefined;
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Headers are Latin-1; this sends the bytes of the text in UTF-8, without control characters. */
function headerText(text: string): string {
  const bytes = new TextEncoder().encode(text.replaceAll(/\p{Cc}+/gu, ' ').trim());
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
}
