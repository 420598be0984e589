/** A participant, as configured. */
export type ServiceSettings = HttpServiceSettings | GrpcServiceSettings;

type AnyService = Readonly<{
  name: string;
  maxInFlight: number;
  /** Whether a call may be repeated if its effect is unknown. */
  isIdempotent: boolean;
  /** Functions, because a value may come from a file that changes, and so that no secret gets logged. */
  headers: Readonly<Record<string, () => string>>;
  /** Undefined: no TLS for gRPC; for HTTP the URL decides. */
  tls: Readonly<{ ca: string | undefined; cert: string | undefined; key: string | undefined }> | undefined;
}>;

export type HttpServiceSettings = AnyService & Readonly<{ type: 'http'; baseUrl: string }>;

export type GrpcServiceSettings = AnyService &
  Readonly<{
    type: 'grpc';
    host: string;
    port: number;
    /** A .proto file or a folder of them; null to use server reflection. */
    proto: string | null;
  }>;
