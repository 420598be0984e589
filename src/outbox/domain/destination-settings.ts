/** A destination as configured; docs/reference/configuration.md documents the keys. */
export type DestinationSettings = HttpSettings | KafkaSettings | SmtpSettings;

type AnySettings = Readonly<{
  name: string;
  /** How many orders a process sends to it at once. */
  maxInFlight: number;
  timeoutMs: number;
  /** How long an order that is always rate limited is retried. */
  maxAgeMs: number;
  /** JSON Schema for requests; undefined accepts any object. */
  schema: Readonly<Record<string, unknown>> | undefined;
  /** Retries after the first send; overrides the limit for all destinations. */
  retryMax?: number;
}>;

export type HttpSettings = AnySettings &
  Readonly<{
    type: 'http';
    url: string;
    method: 'POST' | 'PUT' | 'PATCH';
    /** Read for each send, because a secret file may have changed. */
    headers: Readonly<Record<string, () => string>>;
    tls:
      | Readonly<{ ca?: string | undefined; cert?: string | undefined; key?: string | undefined }>
      | undefined;
    /** `request`: the request as it is. `order`: its fields plus `idempotency_key` and `trace_id`. */
    body: 'request' | 'order';
    /** `json`: a 2xx counts if its body is empty, or JSON without another idempotency key. `any`: every 2xx counts. */
    response: 'json' | 'any';
    maxResponseBytes: number;
    /** The field of an answer with the destination's own id for the effect. */
    outsideIdField: string;
    idempotency: 'none' | 'enforced';
    dedupWindowMs: number;
    conflict: ConflictProfile | undefined;
    /** `{key}` is replaced by the idempotency key. */
    statusUrl: string | undefined;
    /** Undefined: a 2xx means done, 404 means absent. */
    status: StatusProfile | undefined;
    /** Adds `X-Redrive-Signature` to each request. The secret is read for each send and does not throw. */
    sign?: Readonly<{ secret: () => string }>;
    /** The path is a credential: it is removed from stored error texts. */
    isUrlSecret?: boolean;
  }>;

/** What a 409 means: always the same, or by the value of a field or header of the answer. */
export type ConflictProfile =
  | 'processed'
  | 'running'
  | Readonly<{
      in: Readonly<{ field: string }> | Readonly<{ header: string }>;
      processed: readonly string[];
      running: readonly string[];
    }>;

/** What an answer from the status URL means, by the value of a field of its body. */
export type StatusProfile = Readonly<{ field: string; done: readonly string[]; absent: readonly string[] }>;

export type KafkaSettings = AnySettings &
  Readonly<{
    type: 'kafka';
    topic: string;
    /** The record's key; with `ordering_key`, an order without one has no key. */
    key: 'ordering_key' | 'idempotency_key' | 'none';
  }>;

export type SmtpSettings = AnySettings &
  Readonly<{
    type: 'smtp';
    host: string;
    port: number;
    /** `implicit`: TLS from the first byte. `starttls`: fails if the server does not offer it. `none`: plain text. */
    security: 'implicit' | 'starttls' | 'none';
    user: string | undefined;
    password: (() => string) | undefined;
    from: string;
    to: readonly string[];
  }>;
