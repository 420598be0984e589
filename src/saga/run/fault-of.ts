import { codeOf } from '../../kernel/errors.ts';
import { troubleOf } from '../../platform/postgres/sqlstate.ts';

/**
 * Why a statement failed. `values`: because of the values written or read; retrying is useless. `setup`: the server
 * responded and changed nothing, for a reason unrelated to the values: a changed password, a missing permission or
 * table. `outage`: the database is unavailable or overloaded. `ours`: not an error of the database.
 */
export type Fault = 'values' | 'setup' | 'outage' | 'ours';

export function faultOf(error: unknown): Fault {
  const trouble = troubleOf(error);
  if (trouble === 'again') return 'outage';
  // A RangeError: the statement would be too long for a string.
  if (trouble === 'data' || error instanceof RangeError) return 'values';
  const code = codeOf(error) ?? '';
  if (!/^[0-9A-Z]{5}$/.test(code)) return 'ours';
  // Raised by a PL/pgSQL function for a row, or by the server for a corrupt one.
  return /^(P0|XX)/.test(code) ? 'values' : 'setup';
}
