import { Client, Pool, types as pgTypes, type ClientConfig, type CustomTypesConfig } from 'pg';
import { codeOf, messageOf } from '../../kernel/errors.ts';
import { isRejectedLogin, type Login, type LoginSource } from './login.ts';
import { createLoginRotation, type LoginRotation } from './login-rotation.ts';
import type { DatabaseOptions, DatabaseTarget, PoolState } from './database.ts';
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
  /**
   * Runs once more if a pooler rejects the startup parameters, or the server rejects a login that has changed in its
   * file; both happen before anything is sent.
   */
  withFallback<T>(run: (clients: Clients) => Promise<T>): Promise<T>;
  /** Calls back when new connections use another login. Returns what ends that. */
  onNewLogin(listener: () => void): () => void;
  /** Why the login that the files hold is not in use; null if it is. */
  loginTrouble(): string | null;
  state(): PoolState;
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
  const listeners = new Set<() => void>();
  const clientTo = (target: DatabaseTarget, login: () => Login): PlainClientClass =>
    class extends PlainClient {
      constructor() {
        super(clientConfig(options, target, isPooled), login(), isPooled);
      }
    };
  const withFallback = async <T>(run: (clients: Clients) => Promise<T>): Promise<T> => {
    const wasPooled = isPooled;
    const logins = rotations.map((one) => one.current());
    try {
      return await run(clients);
    } catch (error) {
      if (!wasPooled && isRejectedParameter(error)) isPooled = true;
      else if (!isRejectedLogin(error) || !(await hasNewLogin(rotations, logins))) throw error;
      return run(clients);
    }
  };
  const rotate = (source: LoginSource, target: DatabaseTarget): LoginRotation =>
    createLoginRotation({
      source,
      async probe(login) {
        const client = new (clientTo(target, () => login))();
        client.on('error', () => {});
        await client.connect();
        await client.end();
      },
      onReload(outcome) {
        options.onReload?.(outcome, loginTrouble());
        if (outcome === 'reloaded') for (const listener of listeners) listener();
      },
    });

  const { target, direct } = options;
  const login = rotate(target.login, target);
  const directLogin =
    direct === undefined || direct.login === target.login ? login : rotate(direct.login, direct);
  const rotations = [...new Set([login, directLogin])];
  const loginTrouble = (): string | null =>
    rotations.map((one) => one.trouble()).find((trouble) => trouble !== null) ?? null;
  const pool = createPool(options, clientTo(target, login.current), {
    login,
    max: options.maxConnections,
    min: options.keptIdleConnections ?? 0,
  });
  const DirectClient = clientTo(direct ?? target, directLogin.current);
  const directPool =
    direct === undefined ? pool : createPool(options, DirectClient, { login: directLogin, max: 2, min: 0 });
  const pools = [...new Set([pool, directPool])];
  for (const one of pools) listeners.add(() => retireIdle(one));
  const clients: Clients = { pool, directPool, newDirectClient: () => new DirectClient() };

  return {
    isPooled: () => isPooled,
    hasSessions: () => !isPooled || direct !== undefined,
    withFallback,
    onNewLogin(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    loginTrouble,
    state: () => stateOf(pool, options.maxConnections),
    async end() {
      for (const one of rotations) one.close();
      for (const one of pools) await one.end();
    },
  };
}

function stateOf({ totalCount, idleCount, waitingCount }: Pool, max: number): PoolState {
  return { max, total: totalCount, idle: idleCount, waiting: waitingCount };
}

/** Since `logins`, or now in the files. */
async function hasNewLogin(rotations: readonly LoginRotation[], logins: readonly Login[]): Promise<boolean> {
  const refreshed = await Promise.all(rotations.map((one) => one.refresh()));
  return refreshed.includes(true) || rotations.some((one, i) => one.current() !== logins[i]);
}

function createPool(
  options: DatabaseOptions,
  clientClass: PlainClientClass,
  { login, max, min }: Readonly<{ login: LoginRotation; max: number; min: number }>,
): Pool {
  const pool = new Pool({
    Client: clientClass,
    max,
    min,
    idleTimeoutMillis: 30_000,
    connectionTimeoutMillis: options.connectTimeoutMs ?? 5000,
    maxLifetimeSeconds: Math.ceil(options.maxLifetimeMs / 1000),
  });
  // The pool does not keep a client that ends itself before it goes back.
  pool.on('release', (_error, client) => {
    if (client instanceof PlainClient && client.login !== login.current()) void client.end();
  });
  // The pool replaces an idle connection that breaks. Without a listener the error would end the process.
  return pool.on('error', (error) => options.onIdleError?.(error));
}

/**
 * Takes every idle connection once, so that those of a previous login end as they go back: its role may soon be dropped.
 * Busy ones end after their statement or transaction.
 */
function retireIdle(pool: Pool): void {
  for (let left = pool.idleCount; left > 0; left -= 1)
    pool.connect().then(
      (client) => client.release(),
      () => {},
    );
}

/** Values are read by `readerOf`; types that only the server reads, bytea and arrays, by the driver. */
const types: CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    (format === 'binary' ? undefined : readerOf(oid)) ??
    (pgTypes.getTypeParser as (oid: number, format?: string) => (value: string) => unknown)(oid, format),
};

function clientConfig(
  options: DatabaseOptions,
  { host, port, database, ssl }: DatabaseTarget,
  isPooled: boolean,
): ClientConfig {
  return {
    host,
    port,
    database,
    ssl: ssl ?? false,
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

type PlainClientClass = new () => PlainClient;

/** PgBouncer accepts a DateStyle from each client, and rejects the other formats. */
class PlainClient extends Client {
  /** The pair that was in use when this connection was made. */
  readonly login: Login;
  readonly #isPooled: boolean;

  constructor(config: ClientConfig, login: Login, isPooled: boolean) {
    super({ ...config, ...login });
    this.login = login;
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
