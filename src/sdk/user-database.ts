import type { Client, ClientConfig } from 'pg';
import { AppError } from '../kernel/errors.ts';
import { withResolvers } from '../platform/work/with-resolvers.ts';
import type { Database, Queryable } from '../platform/postgres/database.ts';
import { createPreparer } from '../platform/postgres/prepared-statements.ts';
import { readerOf } from '../platform/postgres/value-reader.ts';
import type { Sql } from '../platform/postgres/sql.ts';
import { isLostConnection } from '../platform/postgres/sqlstate.ts';
import type { PostgresClient, PostgresPool, PostgresResult, PostgresStatement } from './postgres-pool.ts';
import { withClient, type Discard } from './with-client.ts';

/**
 * Our statements on the pool of a service. Whatever the service has told its pg or its sessions holds for its own
 * statements; ours are read with our own parsers, and run at READ COMMITTED, writing, whatever the default is.
 */
export function createUserDatabase(
  pool: PostgresPool,
  { connectWithinMs }: Readonly<{ connectWithinMs: number }>,
): Database {
  const isPlain = new WeakMap<PostgresClient, boolean>();
  const preparer = createPreparer();

  const connectInTime = () => connect(pool, connectWithinMs);

  const send = async (client: PostgresClient, statement: Sql): Promise<PostgresResult> => {
    const config = configOf(statement);
    if (!statement.isPrepared) return client.query(config);
    return preparer.run(statement.text, (name) =>
      client.query(name === undefined ? config : { ...config, name }),
    );
  };

  return {
    query: <Row>(statement: Sql) =>
      withClient(connectInTime, async (client, discard): Promise<readonly Row[]> => {
        let plain = isPlain.get(client);
        if (plain === undefined) isPlain.set(client, (plain = await hasPlainDefaults(client)));
        if (plain) return (await send(client, statement)).rows as readonly Row[];
        return inTransaction(client, discard, (tx) => tx.query<Row>(statement));
      }),

    transaction: (work) =>
      withClient(connectInTime, (client, discard) => inTransaction(client, discard, work)),

    call() {
      throw new AppError('SYS_JOBS_UNSUPPORTED', 'internal', 'procedures are called by the server only');
    },

    async connect(onEnd) {
      const client = newClientLike(pool);
      let last: Error | undefined;
      client.on('error', (error) => void (last = error));
      client.on('end', () => onEnd(last));
      await client.connect();
      return {
        async listen(channel, onPayload) {
          client.on('notification', (message) => {
            if (message.channel === channel) onPayload(message.payload ?? '');
          });
          await client.query(`LISTEN ${client.escapeIdentifier(channel)}`);
        },
        close: () => client.end(),
      };
    },

    // The pool is the service's.
    end: async () => {},
  };
}

/**
 * By default a pool lets us wait for ever. Where handlers use all of its connections our leases would be over before
 * anybody knows, so it is an error in time, in the driver's words for it and in ours.
 */
async function connect(pool: PostgresPool, withinMs: number): Promise<PostgresClient> {
  const connecting = pool.connect();
  const late = withResolvers<never>();
  const timer = setTimeout(() => {
    const why = `none of the ${pool.totalCount} connections of the pool was free for ${withinMs} ms: give it more than handlers use`;
    late.reject(new Error(`timeout exceeded when trying to connect: ${why}`));
  }, withinMs);
  try {
    return await Promise.race([connecting, late.promise]);
  } catch (error) {
    void connecting.then(
      (client) => client.release(),
      () => {},
    );
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function inTransaction<T>(
  client: PostgresClient,
  discard: Discard,
  work: (tx: Queryable) => Promise<T>,
): Promise<T> {
  // A process that is paused or cut off inside a transaction must not hold its locks for hours. And times that we
  // read as text and hand back must mean the same then.
  await client.query(
    `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL idle_in_transaction_session_timeout = '5s';
     SET LOCAL DateStyle = 'ISO'; SET LOCAL extra_float_digits = 1`,
  );
  try {
    const value = await work({
      query: async <Row>(statement: Sql) => (await client.query(configOf(statement))).rows as readonly Row[],
    });
    await client.query('COMMIT');
    return value;
  } catch (error) {
    if (!isLostConnection(error)) await client.query('ROLLBACK').catch(discard);
    throw error;
  }
}

/** Whether a single statement runs as ours have to; asked once for each connection. */
async function hasPlainDefaults(client: PostgresClient): Promise<boolean> {
  const { rows } = await client.query({
    text: `SELECT (current_setting('default_transaction_isolation') = 'read committed'
                   AND current_setting('default_transaction_read_only') = 'off'
                   AND current_setting('DateStyle') LIKE 'ISO%'
                   AND current_setting('extra_float_digits')::int >= 1)::text AS plain`,
    types: ownTypes,
  });
  return (rows[0] as Readonly<{ plain: unknown }> | undefined)?.plain === 'true';
}

type OpenPool = Readonly<{ Client: new (config: ClientConfig) => Client; options: ClientConfig }>;

/** A connection to where the pool's go, with the pool's own class and credentials, but not one of the pool. */
function newClientLike(pool: PostgresPool): Client {
  const { Client: ClientOfPool, options } = pool as unknown as OpenPool;
  // Pools hide the password when their options are copied.
  const { password } = options;
  return new ClientOfPool({ ...options, ...(password === undefined ? {} : { password }), keepAlive: true });
}

/** Never the parsers of the service, nor of its driver. A type that is unknown here must not come as mere text. */
const ownTypes: NonNullable<PostgresStatement['types']> = {
  getTypeParser: (oid) => readerOf(oid) ?? unreadable(oid),
};

function unreadable(oid: number): () => never {
  return () => {
    throw new AppError(
      'SYS_JOBS_UNSUPPORTED',
      'internal',
      `values of type ${oid} are read by the server only`,
    );
  };
}

/** Nobody waits for TCP to give up on a way that is cut: a lease would be over long before. */
const queryTimeoutMs = 30_000;

function configOf(statement: Sql): PostgresStatement & { query_timeout: number } {
  const values = [...statement.values];
  return { text: statement.text, values, types: ownTypes, query_timeout: queryTimeoutMs };
}
