import { randomUUID } from 'node:crypto';
import {
  createReplicationMutexConcurrencyController,
  createReplicationSemaphoreConcurrencyController,
  DatabaseSetup,
  getDisabledLogger,
  initializePollingMessageListener,
  initializeReplicationMessageListener,
  type GeneralMessageHandler,
} from 'pg-transactional-outbox';
import { Client, type PoolConfig } from 'pg';
import { Pool } from 'undici';
import type { Sink } from './outbox-support.ts';
import { timed, until } from './support.ts';

/**
 * The peer, pg-transactional-outbox, sending to the same sink over the same HTTP client. It has two listeners: one polls
 * the table, the other reads the write-ahead log and hears of a message at once; its document recommends the latter
 * where the lag counts.
 */
export type Peer = Readonly<{
  /** A connection of the bench's own, for what a service would do. */
  client: Client;
  add(ids: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}>;

/** `atOnce` is the batch of the poller, and the semaphore of the log reader; undefined: as it comes. */
export type PeerOptions = Readonly<{ listener: 'polling' | 'replication'; atOnce?: number }>;

/** PostgreSQL has to be started with these for the log reader. */
export const peerSettings = { wal_level: 'logical' } as const;

const schema = 'peer';
const table = 'outbox';
const slot = 'peer_slot';
const setup = {
  outboxOrInbox: 'outbox',
  database: 'redrive',
  schema,
  table,
  listenerRole: 'CURRENT_USER',
  nextMessagesName: 'next_outbox_messages',
  publication: 'peer_publication',
  replicationSlot: slot,
} as const;
/** The poller's own batch; the log reader takes one at a time. */
const ownBatchSize = 5;

export async function startPeer(url: string, sink: Sink, options: PeerOptions): Promise<Peer> {
  const client = new Client({ connectionString: url });
  // The server stops first where something goes wrong.
  client.on('error', () => {});
  await client.connect();
  await makeTable(client, options);
  const http = new Pool(new URL(sink.url).origin, { connections: options.atOnce ?? ownBatchSize });
  const shutdown = listen(url, http, options);
  return {
    client,
    add: (ids) => addMessages(client, ids, options.atOnce === undefined ? 'sequential' : 'parallel'),
    async stop() {
      await shutdown();
      await dropSlot(client);
      await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await client.end();
      await http.close();
    },
  };
}

/**
 * Messages per second. The poller reads everything that waits for each batch, so it gets few: with more it is slower
 * still. At first it takes one at a time, as many times as a batch is large; measured is what comes after.
 */
export async function measurePeer(
  url: string,
  sink: Sink,
  { messages, ...options }: PeerOptions & Readonly<{ messages: number }>,
): Promise<number> {
  const before = await sink.received();
  const arrived = async (): Promise<number> => (await sink.received()) - before;
  const peer = await startPeer(url, sink, options);
  try {
    await peer.add(Array.from({ length: messages }, () => randomUUID()));
    await peer.client.query(`ANALYZE ${schema}.${table}`);
    await until(async () => (await arrived()) > 2 * (options.atOnce ?? ownBatchSize));
    const already = await arrived();
    const seconds = await timed(async () => {
      await until(async () => (await arrived()) >= messages);
      await until(async () => !(await isAnyOpen(peer.client)));
    });
    return (messages - already) / seconds;
  } finally {
    await peer.stop();
  }
}

async function makeTable(client: Client, { listener }: PeerOptions): Promise<void> {
  await client.query(DatabaseSetup.dropAndCreateTable(setup));
  if (listener === 'polling') {
    await client.query(DatabaseSetup.createPollingFunction(setup));
    await client.query(DatabaseSetup.setupPollingIndexes(setup));
  } else {
    await client.query(DatabaseSetup.setupReplicationCore(setup));
    await client.query(`SELECT pg_create_logical_replication_slot('${slot}', 'pgoutput')`);
  }
}

/** Its connection may still be there for a moment. */
async function dropSlot(client: Client): Promise<void> {
  await until(async () => {
    const { rows } = await client.query<{ active: boolean }>(
      `SELECT active FROM pg_replication_slots WHERE slot_name = '${slot}'`,
    );
    if (rows[0]?.active === false) await client.query(`SELECT pg_drop_replication_slot('${slot}')`);
    return rows[0]?.active !== true;
  });
}

/** What a message says of itself: by default it is sent after those before it. */
async function addMessages(
  client: Client,
  ids: readonly string[],
  concurrency: 'sequential' | 'parallel',
): Promise<void> {
  await client.query(
    `INSERT INTO ${schema}.${table} (id, aggregate_type, aggregate_id, message_type, concurrency, payload)
     SELECT id, 'order', i::text, 'order_placed', $1,
            jsonb_build_object(
              'symbol', 'USDJPY', 'intent', 'BUY', 'qty', i, 'limit_price', 150.25,
              'meta', jsonb_build_object('strategy', 'bench', 'note', repeat('x', 100)))
     FROM unnest($2::uuid[]) WITH ORDINALITY AS one (id, i)`,
    [concurrency, ids],
  );
}

function listen(url: string, http: Pool, { listener, atOnce }: PeerOptions): () => Promise<void> {
  const connection = { connectionString: url };
  // A connection for each message under way: its handlers run in a transaction each.
  const handlers: PoolConfig = { ...connection, max: atOnce ?? ownBatchSize };
  const shared = {
    outboxOrInbox: 'outbox',
    dbListenerConfig: connection,
    dbHandlerConfig: handlers,
  } as const;
  const settings = {
    dbSchema: schema,
    dbTable: table,
    // As its own settings for an outbox are.
    enableMaxAttemptsProtection: false,
    enablePoisonousMessageProtection: false,
  };
  const handler = sendTo(http);
  if (listener === 'replication') {
    const [stopReading] = initializeReplicationMessageListener(
      {
        ...shared,
        settings: { ...settings, dbPublication: setup.publication, dbReplicationSlot: slot },
      },
      handler,
      getDisabledLogger(),
      {
        concurrencyStrategy:
          atOnce === undefined
            ? createReplicationMutexConcurrencyController()
            : createReplicationSemaphoreConcurrencyController(atOnce),
      },
    );
    return stopReading;
  }
  const [stopPolling] = initializePollingMessageListener(
    {
      ...shared,
      settings: {
        ...settings,
        nextMessagesFunctionSchema: schema,
        nextMessagesFunctionName: setup.nextMessagesName,
        ...(atOnce === undefined ? {} : { nextMessagesBatchSize: atOnce }),
      },
    },
    handler,
    getDisabledLogger(),
  );
  return stopPolling;
}

function sendTo(http: Pool): GeneralMessageHandler {
  return {
    async handle({ id, payload }) {
      const answer = await http.request({
        method: 'POST',
        path: '/orders',
        headers: { 'content-type': 'application/json', 'idempotency-key': id },
        body: JSON.stringify(payload),
      });
      await answer.body.json();
      if (answer.statusCode !== 200) throw new Error(`HTTP ${answer.statusCode}`);
    },
  };
}

async function isAnyOpen(client: Client): Promise<boolean> {
  const { rowCount } = await client.query(
    `SELECT 1 FROM ${schema}.${table} WHERE processed_at IS NULL LIMIT 1`,
  );
  return rowCount !== 0;
}
