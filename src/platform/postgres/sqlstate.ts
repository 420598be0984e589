import { codeOf } from '../../kernel/errors.ts';

/**
 * What a failed statement means for the one who sent it. `data`: these values will never be stored (class 22
 * data, 23 constraint, 54 limits): find the culprit. `again`: nothing is wrong with the values (deadlock,
 * serialisation, timeout, lost or refused connection, server out of resources or shutting down): the same statement may be sent again,
 * minding that a lost answer to COMMIT may have been a commit. `other`: a fault of ours or of the schema.
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

/** Out of luck or of time, and none of the values' fault. */
const againCodes: ReadonlySet<string> = new Set([
  '40001', // serialisation failure
  '40P01', // deadlock
  '25006', // a standby that has not been promoted yet
  '25P03', // idle in a transaction for too long: the process was paused
  '25P04', // a transaction that took too long
  '55P03', // a lock that could not be had in time
  '57014', // a statement that took too long
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

/** The database is away, overloaded or slower than the statement timeout: not the caller's fault. */
export function isOutage(error: unknown): boolean {
  return troubleOf(error) === 'again';
}

/** The driver has no codes for the ends of a connection that it notices itself, only texts. */
export function isLostConnection(error: unknown): error is Error {
  return (
    error instanceof Error &&
    /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Query read timeout/.test(
      error.message,
    )
  );
}
