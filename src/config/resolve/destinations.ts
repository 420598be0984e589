import type { TlsFiles } from '../layers/tls-files.ts';

/**
 * Where orders go, as the configuration describes it and the outbox takes it. docs/reference/configuration.md documents
 * the keys.
 */
export type DestinationSettings = HttpDestination | KafkaDestination | SmtpDestination;

type AnyDestination = Readonly<{
  name: string;
  maxInFlight: number;
  timeoutMs: number;
  maxAgeMs: number;
  /** The JSON Schema for requests, read from its file; undefined takes any object. */
  schema: Readonly<Record<string, unknown>> | undefined;
}>;

export type HttpDestination = AnyDestination &
  Readonly<{
    type: 'http';
    url: string;
    method: 'POST' | 'PUT' | 'PATCH';
    /** Functions, because a value may come from a file that changes, and because none may show up in a log. */
    headers: Readonly<Record<string, () => string>>;
    /** What the PEM files hold. */
    tls: TlsFiles | undefined;
    body: 'request' | 'order';
    response: 'json' | 'any';
    maxResponseBytes: number;
    outsideIdField: string;
    idempotency: 'none' | 'enforced';
    dedupWindowMs: number;
    conflict: ConflictProfile | undefined;
    /** Holds `{key}`. */
    statusUrl: string | undefined;
    status: StatusProfile | undefined;
  }>;

export type ConflictProfile =
  | 'processed'
  | 'running'
  | Readonly<{
      in: Readonly<{ field: string }> | Readonly<{ header: string }>;
      processed: readonly string[];
      running: readonly string[];
    }>;

export type StatusProfile = Readonly<{ field: string; done: readonly string[]; absent: readonly string[] }>;

export type KafkaDestination = AnyDestination &
  Readonly<{ type: 'kafka'; topic: string; key: 'ordering_key' | 'idempotency_key' | 'none' }>;

export type SmtpDestination = AnyDestination &
  Readonly<{
    type: 'smtp';
    host: string;
    port: number;
    security: 'implicit' | 'starttls' | 'none';
    user: string | undefined;
    password: (() => string) | undefined;
    from: string;
    to: readonly string[];
  }>;
