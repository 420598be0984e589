import type { Pool } from 'pg';
import { AppError, codeOf } from '../kernel/errors.ts';
import { createPreparer, type Preparer } from '../platform/postgres/prepared-statements.ts';
import type { Sql } from '../platform/postgres/sql.ts';

/** A client in an open transaction: a `Client` or `PoolClient` of pg, or whatever passes its queries on to one. */
export type Transaction = Readonly<{
  query(text: string, values: unknown[]): Promise<Readonly<{ rows: readonly unknown[] }>>;
}>;

/** A pool has `query` too, but runs it on any of its connections: what it adds would outlive a rollback. */
export function requireClient(call: string, tx: unknown): void {
  if (typeof (tx as Readonly<{ query?: unknown }> | null)?.query !== 'function')
    throw new TypeError(
      `${call}: tx is no client with query(text, values), such as a Client or PoolClient of pg`,
    );
  if (isPool(tx))
    throw new TypeError(
      `${call}: tx is a pool, which would add it outside of your transaction; pass the client that \`await pool.connect()\` gave`,
    );
}

/** Whether what is done on it is one statement by itself, in no transaction of the caller's. */
function isPool(tx: unknown): tx is Pool {
  const pool = tx as Readonly<{ totalCount?: unknown; idleCount?: unknown }>;
  return typeof pool.totalCount === 'number' && typeof pool.idleCount === 'number';
}

/** No such schema, function or table. */
const missing: ReadonlySet<string> = new Set(['3F000', '42883', '42P01']);

type Asked = Readonly<{ call: string; slice: string }>;
type Answer = Awaited<ReturnType<Transaction['query']>>;

/** The rows of a statement on the caller's client. A client that is none may answer anything. */
export async function askClient(tx: Transaction, statement: Sql, what: Asked): Promise<readonly unknown[]> {
  let answer: Partial<Answer> | undefined;
  try {
    answer = await send(tx, statement);
  } catch (error) {
    throw inWords(what, error);
  }
  if (answer?.rows === undefined || answer.rows.length === 0)
    throw new TypeError(`${what.call}: query(text, values) of the given client did not answer with { rows }`);
  return answer.rows;
}

/** A database without our tables is told in words. */
function inWords({ slice }: Asked, error: unknown): unknown {
  return missing.has(codeOf(error) ?? '') ? notMigrated(slice, error) : error;
}

const preparers = new WeakMap<Pool, Preparer>();

/**
 * On a pool the statement is one by itself, and the pool's connections may keep it ready. A client may be in a
 * transaction, which a refusal would end.
 */
function send(tx: Transaction, { text, values, isPrepared }: Sql): ReturnType<Transaction['query']> {
  if (!isPrepared || !isPool(tx)) return tx.query(text, [...values]);
  const preparer = preparers.get(tx) ?? createPreparer();
  preparers.set(tx, preparer);
  return preparer.run(text, (name) =>
    tx.query({ ...(name === undefined ? {} : { name }), text, values: [...values] }),
  );
}

export function notMigrated(slice: string, cause?: unknown): AppError {
  return new AppError(
    'SYS_PLATFORM_SCHEMA_OUTDATED',
    'internal',
    `the database has no ${slice} yet, or that of an older version: apply the migrations with \`redrive migrate up\``,
    { cause },
  );
}
