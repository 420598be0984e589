import type { ConnectionConfig, QueryConfig } from 'pg';
import { createConnections, type Connections } from './connections.ts';
import { createPreparer } from './prepared-statements.ts';
import { openListener } from './listener.ts';
import type { LoginSource } from './login.ts';
import type { ReloadOutcome } from './login-rotation.ts';
import type { Sql } from './sql.ts';
import { isLostConnection } from './sqlstate.ts';

/** Runs one statement, in a transaction or outside of one. */
export type Queryable = Readonly<{
  query<Row>(statement: Sql): Promise<readonly Row[]>;
}>;

export type Database = Queryable &
  Readonly<{
    /** Commits when `work` resolves, rolls back when it throws. No network call belongs inside. */
    transaction<T>(work: (tx: Queryable) => Promise<T>, options?: TransactionOptions): Promise<T>;
    /** Runs a procedure that commits by itself, and returns its notices (RAISE NOTICE). */
    call(statement: Sql): Promise<readonly string[]>;
    /** Opens a dedicated connection for LISTEN, outside the pool. */
    connect(onEnd: (error: Error | undefined) => void): Promise<DedicatedConnection>;
    end(): Promise<void>;
  }>;

export type TransactionOptions = Readonly<{
  /** Without a statement timeout, for migrations. */
  isPatient?: boolean;
}>;

export type DedicatedConnection = Readonly<{
  listen(channel: string, onPayload: (payload: string) => void): Promise<void>;
  close(): Promise<void>;
}>;

/** The database of the server. */
export type ServerDatabase = Database &
  Readonly<{
    /** False behind a pooler in transaction mode without a direct target; known after the first statement. */
    canListen(): boolean;
    /** Why the login that the secret files hold is not in use; null if it is. */
    loginTrouble(): string | null;
    /** How many connections the pool has now, and how many callers wait for one. */
    connections(): PoolState;
  }>;

export type PoolState = Readonly<Record<'max' | 'total' | 'idle' | 'waiting', number>>;

export type DatabaseTarget = Readonly<{
  host: string;
  port: number;
  database: string;
  /** May change while the process runs: see `login-rotation.ts`. */
  login: LoginSource;
  ssl: ConnectionConfig['ssl'];
}>;

export type DatabaseOptions = Readonly<{
  target: DatabaseTarget;
  /** Bypasses a pooler in transaction mode, for LISTEN, migrations and procedures, which need a session. */
  direct?: DatabaseTarget | undefined;
  maxConnections: number;
  /** More idle connections than these are closed after 30 s. */
  keptIdleConnections?: number;
  maxLifetimeMs: number;
  connectTimeoutMs?: number;
  statementTimeoutMs?: number;
  applicationName: string;
  onQuery?: (seconds: number) => void;
  onIdleError?: (error: Error) => void;
  /** After every attempt to use a changed login, with what stands against it. */
  onReload?: (outcome: ReloadOutcome, trouble: string | null) => void;
}>;

export function createDatabase(options: DatabaseOptions): ServerDatabase {
  const connections = createConnections(options);
  const preparer = createPreparer();

  const timed: Timed = async (run) => {
    const begin = performance.now();
    try {
      return await run();
    } finally {
      options.onQuery?.((performance.now() - begin) / 1000);
    }
  };

  return {
    query: (statement) =>
      timed(async () => {
        const send = async (name?: string) => {
          const config = { ...(name === undefined ? {} : { name }), ...configOf(statement) };
          return (await connections.withFallback(({ pool }) => pool.query(config))).rows;
        };
        return statement.isPrepared && !connections.isPooled() ? preparer.run(statement.text, send) : send();
      }),
    transaction: (work, { isPatient = false } = {}) =>
      runTransaction({ connections, timed, statementTimeoutMs: options.statementTimeoutMs }, work, isPatient),
    call: (statement) => callProcedure(connections, statement),
    connect: (onEnd) => openListener(connections, onEnd),
    canListen: connections.hasSessions,
    loginTrouble: connections.loginTrouble,
    connections: connections.state,
    end: connections.end,
  };
}

type Timed = <T>(run: () => Promise<T>) => Promise<T>;

async function runTransaction<T>(
  deps: Readonly<{ connections: Connections; timed: Timed; statementTimeoutMs: number | undefined }>,
  work: (tx: Queryable) => Promise<T>,
  isPatient: boolean,
): Promise<T> {
  const { connections, timed } = deps;
  const client = await connections.withFallback(({ pool, directPool }) =>
    (isPatient ? directPool : pool).connect(),
  );
  let broken: Error | undefined;
  const onError = (error: Error): void => void (broken = error);
  client.on('error', onError);
  try {
    // READ COMMITTED: a statement that follows a lock must see what others have written before. The idle timeout frees
    // the locks of a process that is paused or cut off inside a transaction.
    const isPooled = connections.isPooled();
    const timeoutMs = isPooled && !isPatient ? deps.statementTimeoutMs : undefined;
    await client.query(
      `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '5s'
       ${timeoutMs === undefined ? '' : `; SET LOCAL statement_timeout = ${timeoutMs}`}
       ${isPooled ? '; SET LOCAL extra_float_digits = 1' : ''}`,
    );
    const value = await work({
      query: (statement) => timed(async () => (await client.query(configOf(statement, isPatient))).rows),
    });
    await client.query('COMMIT');
    return value;
  } catch (error) {
    if (isLostConnection(error)) broken ??= error;
    else await client.query('ROLLBACK').catch((rollback: Error) => void (broken ??= rollback));
    throw error;
  } finally {
    client.off('error', onError);
    client.release(broken);
  }
}

async function callProcedure(connections: Connections, statement: Sql): Promise<readonly string[]> {
  const client = await connections.withFallback(({ directPool }) => directPool.connect());
  const notices: string[] = [];
  const onNotice = (notice: { message?: string | undefined }): void =>
    void notices.push(notice.message ?? '');
  client.on('notice', onNotice);
  try {
    // A procedure works in batches, so the statement timeout for short statements does not fit. It commits by itself,
    // so the timeout can only be set for the session; a session of a pooler has none of ours.
    if (connections.hasSessions()) await client.query('SET statement_timeout = 0');
    await client.query(configOf(statement, true));
    return notices;
  } finally {
    client.off('notice', onNotice);
    // The session was changed, so the connection does not go back to the pool.
    client.release(true);
  }
}

/** No timeout of the driver; zero would mean its default. */
const patientMs = 2_147_483_647;

function configOf(statement: Sql, isPatient = false): QueryConfig & { query_timeout?: number } {
  const config = { text: statement.text, values: [...statement.values] };
  return isPatient ? { ...config, query_timeout: patientMs } : config;
}
