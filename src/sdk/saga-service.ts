import { recordMapping, recordPathValue, type Mapped, type Ref, type Scope } from './saga-reference.ts';

declare const answered: unique symbol;
declare const sent: unique symbol;

/** A call of a step. Answer: the response; Payload: the required type of the saga's payload, if that is sent. */
export type Call<Answer, Payload = never> = Readonly<{
  service: string;
  /** With the references of its path, and the request; undefined sends the saga's payload. */
  record(scope: Scope): Readonly<{ method: string; input: unknown }>;
  [answered]?: Answer;
  [sent]?: (payload: Payload) => void;
}>;

/** One method of a service; the types are those of its JSON. */
export type Method<Request, Answer> = Readonly<{
  method: string;
  [answered]?: Answer;
  [sent]?: Request;
}>;

type PathScalar = string | number | boolean;

/** For a path such as `DELETE /reservations/{id}`. */
export type PathValues = Readonly<
  Record<string, PathScalar | Ref<PathScalar> | Ref<PathScalar | undefined, 'undo'>>
>;

export type Operation<Request, Answer> = {
  /** Sends the saga's payload. */
  (): Call<Answer, Request>;
  (request: undefined, path: PathValues): Call<Answer, Request>;
  (request: Mapped<Request>, path?: PathValues): Call<Answer, unknown>;
};

/** `call<ReserveRequest, Reservation>('InventoryService.Reserve')`, or `'POST /reservations'`. */
export function call<Request = unknown, Answer = unknown>(method: string): Method<Request, Answer> {
  return { method };
}

type OperationOf<M> = M extends Method<infer Request, infer Answer> ? Operation<Request, Answer> : never;

/** A service, by its name in the server's configuration, and its methods. */
export function service<const M extends Readonly<Record<string, Readonly<{ method: string }>>>>(
  name: string,
  methods: M,
): { readonly [K in keyof M]: OperationOf<M[K]> } {
  const operations = Object.entries(methods).map(([key, { method }]) => {
    const operation = (request?: unknown, path?: PathValues): Call<unknown> => ({
      service: name,
      record: (scope) => ({
        method: fillPath(method, path, scope),
        input: request === undefined ? undefined : recordMapping(request, scope, 'the request'),
      }),
    });
    return [key, operation] as const;
  });
  return Object.fromEntries(operations) as { readonly [K in keyof M]: OperationOf<M[K]> };
}

/** Names in braces, but not `${…}` references. */
const PLACEHOLDER = /(?<!\$)\{(?<name>\w+)\}/g;

function fillPath(method: string, path: PathValues = {}, scope: Scope): string {
  const unused = new Set(Object.keys(path));
  const filled = method.replaceAll(PLACEHOLDER, (_, name: string) => {
    if (!Object.hasOwn(path, name)) throw new TypeError(`${method} is called without ${name}`);
    unused.delete(name);
    return recordPathValue(path[name], scope, `${name} of ${method}`);
  });
  const [extra] = unused;
  if (extra !== undefined) throw new TypeError(`${method} has no {${extra}}`);
  return filled;
}
