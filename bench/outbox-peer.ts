import { randomUUID } from 'node:crypto';
import { DatabaseSetup, getDisabledLogger, initializePollingMessageListener } from 'pg-transactional-outbox';
import { Client, type PoolConfig } from 'pg';
import { Pool } from 'undici';
import type { Sink } from './outbox-support.ts';
import { timed, until } from './support.ts';

/** The peer, pg-transactional-outbox in its polling mode, sending to the same sink over the same HTTP client. */
export type Peer = Readonly<{
  /** A connection of the bench's own, for what a service would do. */
  client: Client;
  add(ids: readonly string[], concurrency: Concurrency): Promise<void>;
  stop(): Promise<void>;
}>;

/** What a message says of itself: by default it is sent after those before it. */
type Concurrency = 'sequential' | 'parallel';

type PeerOptions = Readonly<{
  /** Undefined: as it comes. */
  batchSize?: number;
}>;

const schema = 'peer';
const table = 'outbox';
const nextMessages = 'next_outbox_messages';
const ownBatchSize = 5;

export async function startPeer(url: string, sink: Sink, options: PeerOptions = {}): Promise<Peer> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await makeTable(client);
  const http = new Pool(new URL(sink.url).origin, { connections: options.batchSize ?? ownBatchSize });
  const shutdown = listen(url, http, options);
  return {
    client,
    add: (ids, concurrency) => addMessages(client, ids, concurrency),
    async stop() {
      await shutdown();
      await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await client.end();
      await http.close();
    },
  };
}

export type PeerDrain = PeerOptions & Readonly<{ messages: number; concurrency: Concurrency }>;

/**
 * Messages per second. It reads everything that waits for each batch, so it gets few: with more it is slower still.
 * At first it takes one at a time, as many times as a batch is large; measured is what comes after.
 */
export async function measurePeer(url: string, sink: Sink, setting: PeerDrain): Promise<number> {
  const { messages, batchSize = ownBatchSize } = setting;
  const before = await sink.received();
  const arrived = async (): Promise<number> => (await sink.received()) - before;
  const peer = await startPeer(url, sink, setting);
  try {
    await peer.add(
      Array.from({ length: messages }, () => randomUUID()),
      setting.concurrency,
    );
    await peer.client.query(`ANALYZE ${schema}.${table}`);
    await until(async () => (await arrived()) > 2 * batchSize);
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

async function makeTable(client: Client): Promise<void> {
  const config = {
    outboxOrInbox: 'outbox',
    database: 'redrive',
    schema,
    table,
    listenerRole: 'postgres',
    nextMessagesName: nextMessages,
  } as const;
  await client.query(DatabaseSetup.dropAndCreateTable(config));
  await client.query(DatabaseSetup.createPollingFunction(config));
  await client.query(DatabaseSetup.setupPollingIndexes(config));
}

async function addMessages(client: Client, ids: readonly string[], concurrency: Concurrency): Promise<void> {
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

function listen(url: string, http: Pool, { batchSize }: PeerOptions): () => Promise<void> {
  const connection = { connectionString: url };
  // A connection for each message of a batch: its handlers run in a transaction each.
  const handlers: PoolConfig = { ...connection, max: batchSize ?? ownBatchSize };
  const [shutdown] = initializePollingMessageListener(
    {
      outboxOrInbox: 'outbox',
      dbListenerConfig: connection,
      dbHandlerConfig: handlers,
      settings: {
        dbSchema: schema,
        dbTable: table,
        nextMessagesFunctionSchema: schema,
        nextMessagesFunctionName: nextMessages,
        // As its own settings for an outbox are.
        enableMaxAttemptsProtection: false,
        enablePoisonousMessageProtection: false,
        ...(batchSize === undefined ? {} : { nextMessagesBatchSize: batchSize }),
      },
    },
    {
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
    },
    getDisabledLogger(),
  );
  return shutdown;
}

async function isAnyOpen(client: Client): Promise<boolean> {
  const { rowCount } = await client.query(
    `SELECT 1 FROM ${schema}.${table} WHERE processed_at IS NULL LIMIT 1`,
  );
  return rowCount !== 0;
}
