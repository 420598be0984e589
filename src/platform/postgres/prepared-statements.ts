import { createHash } from 'node:crypto';
import { codeOf } from '../../kernel/errors.ts';

/**
 * Runs a statement that connections keep ready: it is taken apart once per connection, and soon planned once. What
 * stands between us and the server may not know about that (a pooler in transaction mode, a pool that resets its
 * connections): then the first refusal ends it for good, and the statement goes out as any other. A refusal comes before
 * anything is done, so this is safe for single statements; inside of a transaction nothing is sent this way.
 */
export type Preparer = Readonly<{
  /** `send` gets the name of the statement, or undefined where it is to go without. */
  run<T>(text: string, send: (name: string | undefined) => Promise<T>): Promise<T>;
}>;

/** No such statement, one of that name is there already, or its result is not what it was before a migration. */
const refusals: ReadonlySet<string> = new Set(['26000', '42P05', '0A000']);

export function createPreparer(): Preparer {
  const names = new Map<string, string>();
  let isRefused = false;
  return {
    async run(text, send) {
      if (isRefused) return send(undefined);
      const name = names.get(text) ?? nameOf(text);
      names.set(text, name);
      try {
        return await send(name);
      } catch (error) {
        if (!refusals.has(codeOf(error) ?? '')) throw error;
        isRefused = true;
        return send(undefined);
      }
    },
  };
}

/** The same for the same text in every version and copy of this code: connections may be shared with another one. */
function nameOf(text: string): string {
  return `redrive_${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
}
