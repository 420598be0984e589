import { codeOf } from '../../kernel/errors.ts';

/** Lock timeout, deadlock, unique violation. */
const contended: ReadonlySet<string> = new Set(['55P03', '40P01', '23505']);

/**
 * Null, with nothing changed, if another transaction has locked one of the rows, or has taken a dedupe key that was
 * free a moment ago.
 */
export async function unlessContended<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (contended.has(codeOf(error) ?? '')) return null;
    throw error;
  }
}
