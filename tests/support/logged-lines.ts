import { createLogger, type Logger } from '../../src/platform/telemetry/logger.ts';

/** A line of the log, as far as tests look at it. */
export type LoggedLine = Readonly<{
  level: string;
  msg: string;
  err?: Readonly<{ code?: string; message?: string }>;
}>;

/** A logger for a system in this process whose lines a test reads. */
export function loggerInto(lines: LoggedLine[]): Logger {
  return createLogger({
    service: 'test',
    version: '0',
    environment: 'test',
    level: 'info',
    stream: { write: (line: string) => void lines.push(JSON.parse(line) as LoggedLine) },
  });
}
