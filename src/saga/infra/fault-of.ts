import { codeOf } from '../../kernel/errors.ts';
import { troubleOf } from '../../platform/postgres/sqlstate.ts';

/**
 * Who is to blame for a statement that failed. `values`: what was written or read with it, and trying again is of no
 * use. `setup`: the server has answered and changed nothing, and nothing is wrong with the values: a password that is
 * being changed, a permission or a table that is missing for a moment. `outage`: the database is away or overloaded.
 * `ours`: no database has said so.
 */
export type Fault = 'values' | 'setup' | 'outage' | 'ours';

export function faultOf(error: unknown): Fault {
  const trouble = troubleOf(error);
  if (trouble === 'again') return 'outage';
  // What could not even be put into words, because it is too long.
  if (trouble === 'data' || error instanceof RangeError) return 'values';
  const code = codeOf(error) ?? '';
  if (!/^[0-9A-Z]{5}$/.test(code)) return 'ours';
  // Raised by a function for a row, or by the server because of what it has found in one.
  return /^(P0|XX)/.test(code) ? 'values' : 'setup';
}
