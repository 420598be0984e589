import { isSpanContextValid, trace } from '@opentelemetry/api';
import { pino } from 'pino';
import { escapeText } from '../../kernel/escape-text.ts';
import { maskUrlPasswords } from './mask-url-passwords.ts';

export type Logger = pino.Logger;

export type LogLevel = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent';

export type LoggerOptions = Readonly<{
  service: string;
  version: string;
  environment: string;
  level: LogLevel;
  /** Covers what is protected in a line, which is JSON. */
  cover?: (json: string) => string;
  /** Default: standard output. */
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
 * JSON lines with service, version and environment. Secrets are removed twice: fields with names such as `password` are
 * censored, and passwords in URLs are masked anywhere in the line, also in error texts. Control characters are escaped,
 * so that a log can be read in a terminal.
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
      hooks: { streamWrite: (line) => makeHarmless(line, options.cover) },
    },
    options.stream ?? pino.destination(1),
  );
}

function atAnyShallowDepth(key: string): readonly string[] {
  const joined = key.startsWith('[') ? key : `.${key}`;
  return [key, `*${joined}`, `*.*${joined}`];
}

/** The ids of the active span, if an SDK propagates it. */
function activeTrace(): Readonly<{ trace_id?: string }> {
  const span = trace.getActiveSpan()?.spanContext();
  return span !== undefined && isSpanContextValid(span) ? { trace_id: span.traceId } : {};
}

/** Escapes control characters, but not the line end. */
function makeHarmless(line: string, cover: (json: string) => string = (json) => json): string {
  const json = line.endsWith('\n') ? line.slice(0, -1) : line;
  return `${escapeText(maskUrlPasswords(cover(json)))}\n`;
}
