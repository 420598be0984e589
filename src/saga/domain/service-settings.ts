/** A participant as the configuration describes it. */
export type ServiceSettings = HttpServiceSettings | GrpcServiceSettings;

type AnyService = Readonly<{
  name: string;
  maxInFlight: number;
  /** Whether a call may be made again after one whose end is not known. */
  isIdempotent: boolean;
  /** Functions, because a value may come from a file that changes, and because none may show up in a log. */
  headers: Readonly<Record<string, () => string>>;
  /** Undefined: no TLS for gRPC; for HTTP the address says it. */
  tls: Readonly<{ ca: string | undefined; cert: string | undefined; key: string | undefined }> | undefined;
}>;

export type HttpServiceSettings = AnyService & Readonly<{ type: 'http'; baseUrl: string }>;

export type GrpcServiceSettings = AnyService &
  Readonly<{
    type: 'grpc';
    host: string;
    port: number;
    /** A .proto file or a folder of them; null where the server describes itself. */
    proto: string | null;
  }>;
