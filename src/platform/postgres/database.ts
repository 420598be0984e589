import {
  Client,
  escapeIdentifier,
  Pool,
  types as pgTypes,
  type ClientConfig,
  type ConnectionConfig,
  type CustomTypesConfig,
  type QueryConfig,
} from 'pg';
import { createPreparer } from './prepared-statements.ts';
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
    /** Runs a procedure that commits by itself, and returns what it said by RAISE NOTICE. */
    call(statement: Sql): Promise<readonly string[]>;
    /** A connection of its own, outside the pool, for LISTEN. */
    connect(onEnd: (error: Error | undefined) => void): Promise<DedicatedConnection>;
    end(): Promise<void>;
  }>;

export type TransactionOptions = Readonly<{
  /** Its statements may take as long as they take: migrations. */
  isPatient?: boolean;
}>;

export type DedicatedConnection = Readonly<{
  listen(channel: string, onPayload: (payload: string) => void): Promise<void>;
  close(): Promise<void>;
}>;

export type DatabaseTarget = Readonly<{
  host: string;
  port: number;
  database: string;
  /** Both are asked for each new connection, so that credentials may change while the process runs. */
  user: () => string;
  password: () => string | Promise<string>;
  ssl: ConnectionConfig['ssl'];
}>;

export type DatabaseOptions = Readonly<{
  target: DatabaseTarget;
  /** Where LISTEN connects: past a pooler in transaction mode. */
  direct?: DatabaseTarget | undefined;
  maxConnections: number;
  /** Idle connections beyond these are closed after half a minute. */
  keptIdleConnections?: number;
  maxLifetimeMs: number;
  connectTimeoutMs?: number;
  statementTimeoutMs?: number;
  applicationName: string;
  onQuery?: (seconds: number) => void;
  onIdleError?: (error: Error) => void;
}>;

const int8 = 20;

/** Offsets, epochs and counters are bigint in the database and stay bigint here; the rest as the driver does it. */
const types: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === int8 && format !== 'binary'
      ? (text: string) => BigInt(text)
      : (pgTypes.getTypeParser as (oid: number, format?: string) => (value: string) => unknown)(oid, format),
};

export function createDatabase(options: DatabaseOptions): Database {
  const configTo = ({ user, ...target }: DatabaseTarget): ClientConfig => ({
    ...target,
    user: user(),
    ssl: target.ssl ?? false,
    types,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5000,
    keepAlive: true,
    // A pooler (then there is a direct way too) refuses connections that ask for it; it has a timeout of its own.
    ...(options.statementTimeoutMs === undefined || options.direct !== undefined
      ? {}
      : { statement_timeout: options.statementTimeoutMs }),
    // The server's own timeout says nothing when the way to it is cut: nobody waits for TCP to give up.
    query_timeout: (options.statementTimeoutMs ?? 60_000) + 5000,
  });
  class FreshClient extends Client {
    constructor() {
      super(configTo(options.target));
    }
  }
  const pool = new Pool({
    Client: FreshClient,
    max: options.maxConnections,
    min: options.keptIdleConnections ?? 0,
    idleTimeoutMillis: 30_000,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5000,
    maxLifetimeSeconds: Math.ceil(options.maxLifetimeMs / 1000),
  });
  // An idle connection that breaks (the server restarts) is replaced by the pool; without a listener it would
  // end the process.
  pool.on('error', (error) => options.onIdleError?.(error));

  const preparer = createPreparer({ isAllowed: options.direct === undefined });

  const timed = async <T>(run: () => Promise<T>): Promise<T> => {
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
        if (!statement.isPrepared) return (await pool.query(configOf(statement))).rows;
        const { text } = statement;
        return preparer.run(text, async (name) => {
          const { rows } = await pool.query({
            ...(name === undefined ? {} : { name }),
            text,
            values: [...statement.values],
          });
          return rows;
        });
      }),

    async transaction(work, { isPatient = false } = {}) {
      const client = await pool.connect();
      let broken: Error | undefined;
      const noticed = (error: Error): void => void (broken = error);
      client.on('error', noticed);
      try {
        // What is locked in one statement is decided about in the next, which must see what others have written. And
        // a process that is paused or cut off inside a transaction must not hold its locks for hours.
        await client.query(
          `BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '5s'`,
        );
        const tx: Queryable = {
          query: (statement) => timed(async () => (await client.query(configOf(statement, isPatient))).rows),
        };
        const value = await work(tx);
        await client.query('COMMIT');
        return value;
      } catch (error) {
        if (isLostConnection(error)) broken ??= error;
        else await client.query('ROLLBACK').catch((rollback: Error) => void (broken ??= rollback));
        throw error;
      } finally {
        client.off('error', noticed);
        client.release(broken);
      }
    },

    async call(statement) {
      const client = await pool.connect();
      const notices: string[] = [];
      const heard = (notice: { message?: string | undefined }): void =>
        void notices.push(notice.message ?? '');
      client.on('notice', heard);
      try {
        // Its own bound is the batch, not the statement timeout that protects short statements.
        await client.query('SET statement_timeout = 0');
        await client.query(configOf(statement, true));
        return notices;
      } finally {
        client.off('notice', heard);
        // The session was changed, so the connection does not go back.
        client.release(true);
      }
    },

    async connect(onEnd) {
      const client = new Client(configTo(options.direct ?? options.target));
      let last: Error | undefined;
      client.on('error', (error) => void (last = error));
      client.on('end', () => onEnd(last));
      await client.connect();
      return {
        async listen(channel, onPayload) {
          client.on('notification', (message) => {
            if (message.channel === channel) onPayload(message.payload ?? '');
          });
          await client.query(`LISTEN ${escapeIdentifier(channel)}`);
        },
        close: () => client.end(),
      };
    },

    end: () => pool.end(),
  };
}

/** Longer than anything runs; zero would mean the default. */
const patientMs = 2_147_483_647;

function configOf(statement: Sql, isPatient = false): QueryConfig & { query_timeout?: number } {
  const config = { text: statement.text, values: [...statement.values] };
  return isPatient ? { ...config, query_timeout: patientMs } : config;
}
