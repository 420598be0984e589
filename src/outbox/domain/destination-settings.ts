/**
 * A destination as the configuration describes it. `compose` hands these over; what each key means to a user
 * stands in operations.md.
 */
export type DestinationSettings = HttpSettings | KafkaSettings | SmtpSettings;

type AnySettings = Readonly<{
  name: string;
  /** How many orders of it a process has under way at once. */
  maxInFlight: number;
  timeoutMs: number;
  /** How long an order that is only ever asked to come later goes on trying. */
  maxAgeMs: number;
  /** A JSON Schema for requests, already read; undefined takes any object. */
  schema: Readonly<Record<string, unknown>> | undefined;
  /** Retries after the first send, where it is not as many as for all. */
  retryMax?: number;
}>;

export type HttpSettings = AnySettings &
  Readonly<{
    type: 'http';
    url: string;
    method: 'POST' | 'PUT' | 'PATCH';
    /** Values are asked for at each send: a secret file may have changed. */
    headers: Readonly<Record<string, () => string>>;
    tls:
      | Readonly<{ ca?: string | undefined; cert?: string | undefined; key?: string | undefined }>
      | undefined;
    /** `request`: the request alone. `order`: flat, with `idempotency_key` and `trace_id` beside its fields. */
    body: 'request' | 'order';
    /** `json`: a 2xx counts if its body is empty or JSON that names no other key. `any`: every 2xx counts. */
    response: 'json' | 'any';
    maxResponseBytes: number;
    /** The field of an answer that names what was done outside. */
    outsideIdField: string;
    idempotency: 'none' | 'enforced';
    dedupWindowMs: number;
    conflict: ConflictProfile | undefined;
    /** `{key}` in it stands for the idempotency key. */
    statusUrl: string | undefined;
    /** Undefined: a 2xx says done, 404 says absent. */
    status: StatusProfile | undefined;
    /** Each request carries `X-Redrive-Signature`. The secret is asked for at each send, and does not throw. */
    sign?: Readonly<{ secret: () => string }>;
    /** Whoever knows the path may write there: no text that is kept repeats it. */
    isUrlSecret?: boolean;
  }>;

/** What a 409 means: always one thing, or by the value of a field or header of the answer. */
export type ConflictProfile =
  | 'processed'
  | 'running'
  | Readonly<{
      in: Readonly<{ field: string }> | Readonly<{ header: string }>;
      processed: readonly string[];
      running: readonly string[];
    }>;

/** What the answer to a status question means, by the value of a field of its body. */
export type StatusProfile = Readonly<{ field: string; done: readonly string[]; absent: readonly string[] }>;

export type KafkaSettings = AnySettings &
  Readonly<{
    type: 'kafka';
    topic: string;
    /** What the record's key is; an order without an ordering key has none by `ordering_key`. */
    key: 'ordering_key' | 'idempotency_key' | 'none';
  }>;

export type SmtpSettings = AnySettings &
  Readonly<{
    type: 'smtp';
    host: string;
    port: number;
    /** `implicit`: TLS from the first byte. `starttls`: refused where the server has none. `none`: in the clear. */
    security: 'implicit' | 'starttls' | 'none';
    user: string | undefined;
    password: (() => string) | undefined;
    from: string;
    to: readonly string[];
  }>;
