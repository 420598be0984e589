import { Client, credentials, Metadata, status, type ServiceError } from '@grpc/grpc-js';
import { messageOf } from '../../kernel/errors.ts';

/** Calls one server by path, with bytes as request and response. */
export type GrpcChannel = Readonly<{
  call(call: GrpcCall): Promise<GrpcAnswer>;
  /** The responses of a bidirectional stream, one for each request. */
  exchange(path: string, requests: readonly Buffer[], timeoutMs: number): Promise<readonly Buffer[]>;
  /** Rejects if there is no connection within that time. */
  connect(withinMs: number): Promise<void>;
  close(): void;
}>;

export type GrpcTarget = Readonly<{
  host: string;
  port: number;
  tls?:
    | Readonly<{ ca?: string | undefined; cert?: string | undefined; key?: string | undefined }>
    | undefined;
  maxAnswerBytes: number;
}>;

export type GrpcCall = Readonly<{
  path: string;
  request: Buffer;
  metadata: Readonly<Record<string, string>>;
  timeoutMs: number;
  signal: AbortSignal;
  /** Asked when the connection is open, right before the call is sent. */
  mayBegin?: () => boolean;
}>;

export type GrpcAnswer =
  | Readonly<{ end: 'answered'; response: Buffer }>
  /** `trailers` have lower-case names. */
  | Readonly<{ end: 'failed'; code: GrpcCode; detail: string; trailers: Readonly<Record<string, string>> }>
  /** Nothing was sent: no connection, or the call was withdrawn. */
  | Readonly<{ end: 'not_sent'; detail: string; isUnreachable: boolean }>;

export type GrpcCode = keyof typeof status;

/** A service that cannot be reached by then is down: its circuit decides about later calls. */
const connectWithinMs = 5000;
const asIs = (bytes: Buffer): Buffer => bytes;

export function openGrpcChannel(target: GrpcTarget): GrpcChannel {
  const host = target.host.includes(':') ? `[${target.host}]` : target.host;
  const client = new Client(`${host}:${target.port}`, credentialsOf(target), {
    'grpc.max_receive_message_length': target.maxAnswerBytes,
    'grpc.keepalive_time_ms': 60_000,
    'grpc.initial_reconnect_backoff_ms': 200,
    'grpc.max_reconnect_backoff_ms': 5000,
    // The caller decides about retries.
    'grpc.enable_retries': 0,
  });

  const whenReady = (withinMs: number): Promise<void> =>
    new Promise((resolve, reject) => {
      client.waitForReady(Date.now() + withinMs, (error) => (error ? reject(error) : resolve()));
    });

  const send = (call: GrpcCall, timeoutMs: number): Promise<GrpcAnswer> =>
    new Promise((resolve) => {
      const metadata = new Metadata();
      for (const [name, value] of Object.entries(call.metadata)) metadata.set(name, value);
      const deadline = Date.now() + timeoutMs;
      const running = client.makeUnaryRequest(
        call.path,
        asIs,
        asIs,
        call.request,
        metadata,
        { deadline },
        (error, response) => {
          call.signal.removeEventListener('abort', cancel);
          if (error !== null) return resolve(failureOf(error));
          resolve({ end: 'answered', response: response ?? Buffer.alloc(0) });
        },
      );
      const cancel = (): void => running.cancel();
      call.signal.addEventListener('abort', cancel, { once: true });
    });

  return {
    async call(call) {
      const begin = performance.now();
      const unwanted = { end: 'not_sent', isUnreachable: false } as const;
      if (call.signal.aborted) return { ...unwanted, detail: 'aborted' };
      try {
        await whenReady(Math.min(call.timeoutMs, connectWithinMs));
      } catch (error) {
        const detail = `no connection to ${host}:${target.port}: ${messageOf(error)}`;
        return { end: 'not_sent', detail, isUnreachable: true };
      }
      if (call.signal.aborted) return { ...unwanted, detail: 'aborted' };
      if (call.mayBegin?.() === false) return { ...unwanted, detail: 'the call may not begin any more' };
      return send(call, Math.max(1, call.timeoutMs - (performance.now() - begin)));
    },

    exchange: (path, requests, timeoutMs) =>
      new Promise((resolve, reject) => {
        const answers: Buffer[] = [];
        const stream = client.makeBidiStreamRequest(path, asIs, asIs, { deadline: Date.now() + timeoutMs });
        stream.on('data', (bytes: Buffer) => void answers.push(bytes));
        stream.on('error', reject);
        stream.on('end', () => resolve(answers));
        for (const request of requests) stream.write(request);
        stream.end();
      }),

    connect: whenReady,

    close: () => client.close(),
  };
}

function credentialsOf({ tls }: GrpcTarget): ReturnType<typeof credentials.createSsl> {
  if (tls === undefined) return credentials.createInsecure();
  const bytes = (pem: string | undefined): Buffer | null => (pem === undefined ? null : Buffer.from(pem));
  return credentials.createSsl(bytes(tls.ca), bytes(tls.key), bytes(tls.cert));
}

function failureOf(error: ServiceError): GrpcAnswer {
  const trailers = Object.fromEntries(
    Object.entries(error.metadata?.getMap() ?? {}).map(([name, value]) => [name, String(value)]),
  );
  return { end: 'failed', code: codeName(error.code), detail: error.details || error.message, trailers };
}

function codeName(code: number): GrpcCode {
  const name = status[code];
  return name === undefined ? 'UNKNOWN' : (name as GrpcCode);
}
