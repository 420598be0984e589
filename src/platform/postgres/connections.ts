import { Client, Pool, types as pgTypes, type ClientConfig, type CustomTypesConfig } from 'pg';
import { codeOf, messageOf } from '../../kernel/errors.ts';
import type { DatabaseOptions, DatabaseTarget } from './database.ts';
import { readerOf } from './value-reader.ts';

/**
 * The pools of one process. A pooler in transaction mode hands each transaction to another session: it rejects startup
 * parameters, and session settings and prepared statements do not last. So none of them is used if there is a direct
 * target besides the pooler, or after the first rejection; then a transaction sets what it needs with SET LOCAL.
 */
export type Connections = Readonly<{
  isPooled(): boolean;
  /** Whether a session of its own can be had: without a pooler, or past it. */
  hasSessions(): boolean;
  /** Runs once more if a pooler rejects the startup parameters; that happens before anything is sent. */
  withFallback<T>(run: (clients: Clients) => Promise<T>): Promise<T>;
  end(): Promise<void>;
}>;

export type Clients = Readonly<{
  pool: Pool;
  /** The same as `pool` without a direct target. */
  directPool: Pool;
  newDirectClient(): Client;
}>;

export function createConnections(options: DatabaseOptions): Connections {
  let isPooled = options.direct !== undefined;
  const clientTo = (target: DatabaseTarget): typeof Client =>
    class extends PlainClient {
      constructor() {
        super(clientConfig(options, target, isPooled), isPooled);
      }
    };
  const { direct } = options;
  const pool = createPool(options, clientTo(options.target), {
    max: options.maxConnections,
    min: options.keptIdleConnections ?? 0,
  });
  const directPool = direct === undefined ? pool : createPool(options, clientTo(direct), { max: 2, min: 0 });
  const DirectClient = clientTo(direct ?? options.target);
  const clients: Clients = { pool, directPool, newDirectClient: () => new DirectClient() };

  return {
    isPooled: () => isPooled,
    hasSessions: () => !isPooled || direct !== undefined,
    async withFallback(run) {
      const wasPooled = isPooled;
      try {
        return await run(clients);
      } catch (error) {
        if (wasPooled || !isRejectedParameter(error)) throw error;
        isPooled = true;
        return run(clients);
      }
    },
    async end() {
      await pool.end();
      if (directPool !== pool) await directPool.end();
    },
  };
}

function createPool(
  options: DatabaseOptions,
  clientClass: typeof Client,
  { max, min }: Readonly<{ max: number; min: number }>,
): Pool {
  const pool = new Pool({
    Client: clientClass,
    max,
    min,
    idleTimeoutMillis: 30_000,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5000,
    maxLifetimeSeconds: Math.ceil(options.maxLifetimeMs / 1000),
  });
  // The pool replaces an idle connection that breaks. Without a listener the error would end the process.
  return pool.on('error', (error) => options.onIdleError?.(error));
}

/** Values are read by `readerOf`; types that only the server reads, bytea and arrays, by the driver. */
const types: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    (format === 'binary' ? undefined : readerOf(oid)) ??
    (pgTypes.getTypeParser as (oid: number, format?: string) => (value: string) => unknown)(oid, format),
};

function clientConfig(
  options: DatabaseOptions,
  { user, ...target }: DatabaseTarget,
  isPooled: boolean,
): ClientConfig {
  return {
    ...target,
    user: user(),
    ssl: target.ssl ?? false,
    types,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5000,
    keepAlive: true,
    ...(options.statementTimeoutMs === undefined || isPooled
      ? {}
      : { statement_timeout: options.statementTimeoutMs }),
    // The server's timeout does not help when the network is cut; this does not wait for TCP to give up.
    query_timeout: (options.statementTimeoutMs ?? 60_000) + 5000,
  };
}

/** The output formats that `readerOf` reads, whatever `ALTER ROLE … SET` or `ALTER DATABASE … SET` say. */
const outputFormats = { extra_float_digits: '1', bytea_output: 'hex' };

/** The startup message of a connection; not in the types of the driver. */
type StartupConf = Readonly<Record<string, string>>;

/** PgBouncer accepts a DateStyle from each client, and rejects the other formats. */
class PlainClient extends Client {
  readonly #isPooled: boolean;

  constructor(config: ClientConfig, isPooled: boolean) {
    super(config);
    this.#isPooled = isPooled;
  }

  /** Called by the driver. */
  getStartupConf(): StartupConf {
    const driver = Client.prototype as unknown as Record<'getStartupConf', (this: Client) => StartupConf>;
    return {
      ...driver.getStartupConf.call(this),
      DateStyle: 'ISO, MDY',
      ...(this.#isPooled ? {} : outputFormats),
    };
  }
}

/** By PgBouncer's message, because the code stands for any protocol error. */
function isRejectedParameter(error: unknown): boolean {
  return codeOf(error) === '08P01' && messageOf(error).includes('unsupported startup parameter');
}
