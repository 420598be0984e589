import { isSpanContextValid, trace } from '@opentelemetry/api';
import { pino } from 'pino';

export type Logger = pino.Logger;

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

export type LoggerOptions = Readonly<{
  service: string;
  version: string;
  environment: string;
  level: LogLevel;
  /** Where the lines go; standard output when absent. */
  stream?: Readonly<{ write(line: string): void }>;
}>;

const secretKeys = [
  'password',
  'passwd',
  'secret',
  'token',
  'authorization',
  'cookie',
  'api_key',
  'apiKey',
  'connectionString',
  '["set-cookie"]',
  '["x-api-key"]',
];

/**
 * JSON lines with the facts of the process on each of them. Secrets are kept out twice: fields with a telling
 * name are censored, and a password inside a URL is masked wherever it stands in the line, error texts included.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { service, version, environment, level } = options;
  return pino(
    {
      level,
      base: { service, version, environment },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: pino.stdSerializers.errWithCause },
      redact: { paths: secretKeys.flatMap(atAnyShallowDepth), censor: '[redacted]' },
      mixin: activeTrace,
      hooks: { streamWrite: maskUrlPasswords },
    },
    options.stream ?? pino.destination(1),
  );
}

function atAnyShallowDepth(key: string): readonly string[] {
  const joined = key.startsWith('[') ? key : `.${key}`;
  return [key, `*${joined}`, `*.*${joined}`];
}

/** The ids of the span that the code runs in, where an SDK carries it along. */
function activeTrace(): Readonly<{ trace_id?: string }> {
  const span = trace.getActiveSpan()?.spanContext();
  return span !== undefined && isSpanContextValid(span) ? { trace_id: span.traceId } : {};
}

/** `scheme://user:secret@host` becomes `scheme://user:***@host`; the quotes of the JSON line bound the search. */
function maskUrlPasswords(line: string): string {
  return line.includes('://') ? line.replace(/(:\/\/[^\s/"@:]*:)[^\s"]*?(@(?=[\w.[-]))/g, '$1***$2') : line;
}
