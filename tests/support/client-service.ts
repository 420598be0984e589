import * as library from '@redrive/client';
import { call, defineQueue, jobs, outbox, refuse, saga, sagaGuard, service } from '@redrive/client';
import { Pool, type ClientBase } from 'pg';

/**
 * A service that uses the library in every way, for tests/e2e/package.test.ts: it is compiled as an ES module and as
 * CommonJS, against the packed library, and runs on every Node that the library supports.
 */

const [, , name = 'client-service'] = process.argv;
const pool = new Pool({ connectionString: process.env['DATABASE_URL'] });
const mail = defineQueue<{ to: string }>(name);
const inventory = service('inventory', { reserve: call<{ sku: string }, { id: string }>('POST /reserve') });
const workflow = saga<{ sku: string }>(name, { deadline: '30m' })
  .step('reserve', { do: ({ input }) => inventory.reserve({ sku: input.sku }), undo: 'none' })
  .build();

/** What handlers get is the client of pg. */
async function reserve(tx: ClientBase, sku: string): Promise<{ sku: string } | null> {
  const { rows } = await tx.query<{ sku: string }>('SELECT $1::text AS sku', [sku]);
  return rows[0] ?? null;
}

const guard = sagaGuard({ pool });
const guarded = guard.action<{ sku: string }>(
  async (tx, { body }) => (await reserve(tx, body.sku)) ?? refuse('sold out'),
);

async function add(): Promise<readonly unknown[]> {
  const client = await pool.connect();
  await client.query('BEGIN');
  const order = { destination: 'broker', idempotencyKey: `key-of-${name}`, request: { qty: 1 } };
  const added = await outbox.add(client, order);
  const started = await saga.start(client, workflow, { sku: 'shoe' }, { key: name, register: true });
  const job = await jobs.enqueue(client, mail, { to: 'a@example.com' });
  await client.query('COMMIT');
  client.release();
  return [added.outcome, started.outcome, typeof job.jobId];
}

async function handle(): Promise<string> {
  let handled: (to: string) => void = () => {};
  const done = new Promise<string>((resolve) => void (handled = resolve));
  const worker = await jobs.work({ pool, queue: mail, handler: ({ payload }) => handled(payload.to) });
  const to = await done;
  await worker.stop();
  return to;
}

async function participate(): Promise<readonly unknown[]> {
  await guard.migrate();
  const now = Date.now();
  const headers = {
    'saga-id': name,
    'saga-step': 'reserve',
    'saga-op': 'action',
    'saga-started-at': new Date(now).toISOString(),
    'saga-deadline': new Date(now + 300_000).toISOString(),
  };
  const { status, body } = await guarded({ headers, body: { sku: 'shoe' } });
  return [status, body];
}

async function main(): Promise<void> {
  const did = [await add(), await handle(), await participate()];
  await pool.end();
  process.stdout.write(
    JSON.stringify({ node: process.version, did, names: Object.keys(library).toSorted() }),
  );
}

void main();
