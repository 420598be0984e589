import { codeOf } from '../../kernel/errors.ts';

/**
 * What a failed statement means for the one who sent it. `data`: these values will never be stored (class 22
 * data, 23 constraint, 54 limits): find the culprit. `again`: nothing is wrong with the values (deadlock,
 * serialisation, lost or refused connection, server shutting down): the same statement may be sent again,
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

export function troubleOf(error: unknown): Trouble {
  const code = codeOf(error);
  if (code === undefined) return isLostConnection(error) ? 'again' : 'other';
  if (networkCodes.has(code)) return 'again';
  if (!/^[0-9A-Z]{5}$/.test(code)) return isLostConnection(error) ? 'again' : 'other';
  const family = code.slice(0, 2);
  if (family === '22' || family === '23' || family === '54') return 'data';
  // 53300: too many connections; 25006: a standby that has not been promoted yet; 55P03: lock not available.
  if (code === '40001' || code === '40P01' || code === '53300' || code === '25006' || code === '55P03')
    return 'again';
  if (family === '08' || code.startsWith('57P0')) return 'again';
  return 'other';
}

/** The database is away, overloaded or slower than the statement timeout (57014): not the caller's fault. */
export function isOutage(error: unknown): boolean {
  return troubleOf(error) === 'again' || codeOf(error) === '57014';
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
