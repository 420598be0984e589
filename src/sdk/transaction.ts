import { AppError, codeOf } from '../kernel/errors.ts';

/** A client in an open transaction: a `Client` or `PoolClient` of pg, or whatever passes its queries on to one. */
export type Transaction = Readonly<{
  query(text: string, values: unknown[]): Promise<Readonly<{ rows: readonly unknown[] }>>;
}>;

/** A pool has `query` too, but runs it on any of its connections: what it adds would outlive a rollback. */
export function requireClient(call: string, tx: unknown): void {
  const client = tx as Readonly<{ query?: unknown; totalCount?: unknown; idleCount?: unknown }> | null;
  if (typeof client?.query !== 'function')
    throw new TypeError(
      `${call}: tx is no client with query(text, values), such as a Client or PoolClient of pg`,
    );
  if (typeof client.totalCount === 'number' && typeof client.idleCount === 'number')
    throw new TypeError(
      `${call}: tx is a pool, which would add it outside of your transaction; pass the client that \`await pool.connect()\` gave`,
    );
}

/** No such schema, function or table. */
const missing: ReadonlySet<string> = new Set(['3F000', '42883', '42P01']);

/** The rows of a statement on the caller's client; a database without our tables is told in words. */
export async function askClient(
  tx: Transaction,
  statement: Readonly<{ text: string; values: readonly unknown[] }>,
  what: Readonly<{ call: string; slice: string }>,
): Promise<readonly unknown[]> {
  let answer: Partial<Awaited<ReturnType<Transaction['query']>>> | undefined;
  try {
    answer = await tx.query(statement.text, [...statement.values]);
  } catch (error) {
    throw missing.has(codeOf(error) ?? '') ? notMigrated(what.slice, error) : error;
  }
  if (answer?.rows === undefined || answer.rows.length === 0)
    throw new TypeError(`${what.call}: query(text, values) of the given client did not answer with { rows }`);
  return answer.rows;
}

export function notMigrated(slice: string, cause?: unknown): AppError {
  return new AppError(
    'SYS_PLATFORM_SCHEMA_OUTDATED',
    'internal',
    `the database has no ${slice} yet, or that of an older version: apply the migrations with \`redrive migrate up\``,
    { cause },
  );
}
