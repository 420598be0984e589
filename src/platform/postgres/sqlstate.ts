import { codeOf } from '../../kernel/errors.ts';

/**
 * What a failed statement means for its caller. `data`: the database will never store these values (class 22 data, 23
 * constraint, 54 limits). `again`: nothing is wrong with the values (deadlock, serialisation failure, timeout, lost or
 * refused connection, server out of resources or shutting down); the statement may be sent again, but a lost answer to
 * COMMIT may have been a commit. `other`: a bug, or a problem of the schema.
 */
export type Trouble = 'data' | 'again' | 'other';

const networkCodes = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
]);

const againCodes: ReadonlySet<string> = new Set([
  '40001', // serialisation failure
  '40P01', // deadlock
  '25006', // read-only: a standby that is not promoted yet
  '25P03', // idle in transaction timeout: the process was paused
  '25P04', // transaction timeout
  '55P03', // lock timeout
  '57014', // statement timeout
]);

export function troubleOf(error: unknown): Trouble {
  const code = codeOf(error);
  if (code === undefined) return isLostConnection(error) ? 'again' : 'other';
  if (networkCodes.has(code)) return 'again';
  if (!/^[0-9A-Z]{5}$/.test(code)) return isLostConnection(error) ? 'again' : 'other';
  const family = code.slice(0, 2);
  if (family === '22' || family === '23' || family === '54') return 'data';
  if (againCodes.has(code) || family === '08' || family === '53' || family === '58') return 'again';
  if (code.startsWith('57P0')) return 'again';
  return 'other';
}

/** The database is unavailable, overloaded or slower than the statement timeout. */
export function isOutage(error: unknown): boolean {
  return troubleOf(error) === 'again';
}

/** The role of the server lacks a privilege. */
export function isMissingRight(error: unknown): boolean {
  return codeOf(error) === '42501';
}

/** The driver reports lost connections that it notices itself by message only. */
export function isLostConnection(error: unknown): error is Error {
  return (
    error instanceof Error &&
    /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Query read timeout/.test(
      error.message,
    )
  );
}
