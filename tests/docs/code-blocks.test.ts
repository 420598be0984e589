import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fastify, type FastifyInstance } from 'fastify';
import { Pool, type PoolClient } from 'pg';
import { signatureOf } from '../../src/outbox/deliver/senders/signature.ts';
import type { JobWorker } from '../../src/sdk/index.ts';
import { readDocBlocks } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { unusedPort } from '../support/raw-server.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { frames } from './frames.ts';
import { createProject, moduleOf, type Project } from './run-block.ts';

/**
 * Every block of TypeScript or JavaScript in the READMEs and below docs/ is compiled as strictly as TypeScript can
 * against the library, and run against the real system. A new block fails here until it has a frame.
 */

let project: Project;
let system: TestSystem;
let pool: Pool;
let client: PoolClient;
/** The participants of the sagas. */
let app: FastifyInstance;
/** The destination of the outbox; keeps the key of each order that it gets. */
let partner: FastifyInstance;
const received: string[] = [];
/** What the participants do. */
const shop = { isSoldOut: false, refusesDispatch: false, released: [] as string[] };

before(async () => {
  const blocks = (await readDocBlocks()).filter(({ language }) => ['ts', 'js'].includes(language));
  assert.deepEqual(blocks.map(({ id }) => id).toSorted(), Object.keys(frames).toSorted());
  project = await createProject();
  await project.compile(
    blocks.flatMap((block) => {
      const frame = frames[block.id];
      return frame === undefined ? [] : [moduleOf(frame, block)];
    }),
  );
  const port = await unusedPort();
  const participant = { type: 'http', base_url: `http://127.0.0.1:${port}` };
  partner = fastify();
  partner.post('/orders', async (request) => {
    received.push(String(request.headers['idempotency-key']));
    return {};
  });
  const broker = {
    type: 'http',
    url: `${await partner.listen({ port: 0, host: '127.0.0.1' })}/orders`,
    idempotency: 'enforced',
  };
  system = await startTestSystem({
    env: {
      SERVICES: JSON.stringify({ inventory: participant, shipping: participant }),
      OUTBOX_DESTINATIONS: JSON.stringify({ broker }),
    },
  });
  pool = new Pool({ connectionString: system.database.url });
  client = await pool.connect();
  app = fastify();
  app.post('/dispatch', async (_request, reply) => reply.code(shop.refusesDispatch ? 422 : 200).send({}));
  listen = () => app.listen({ port });
});

let listen: () => Promise<unknown>;

after(async () => {
  client?.release();
  await pool?.end();
  await system?.drop();
  await app?.close();
  await partner?.close();
  await project?.remove();
});

test('the example of the outbox commits an order with the data, once', async () => {
  await pool.query('CREATE TABLE accounts (id int, reserved int); INSERT INTO accounts VALUES (7, 0)');
  const state = async () =>
    (
      await pool.query<{ reserved: number; orders: number }>(
        'SELECT reserved, (SELECT count(*)::int FROM outbox.outbox_orders) AS orders FROM accounts',
      )
    ).rows[0];
  await project.run('outbox', { pool });
  assert.deepEqual(await state(), { reserved: 10_000, orders: 1 });
  await project.run('outbox', { pool });
  assert.deepEqual(await state(), { reserved: 20_000, orders: 1 });
  await eventually(() => assert.deepEqual(received, ['order-2026-000117']));
  // The key belongs to another order now, so that nothing of the transaction happens.
  await pool.query(`UPDATE outbox.idempo_ledger SET request_digest = 'another'`);
  await assert.rejects(project.run('outbox', { pool }), { message: 'the key belongs to another order' });
  assert.deepEqual(await state(), { reserved: 20_000, orders: 1 });
});

test('the recipe of the outbox sends the order after the commit; with a used key it rolls back and sends nothing', async () => {
  const reserved = async () =>
    (await pool.query<{ reserved: number }>('SELECT reserved FROM accounts')).rows[0]?.reserved ?? 0;
  const before = await reserved();
  assert.deepEqual(await outcomeOf('readme-outbox', 'order'), 'created');
  assert.equal(await reserved(), before + 10_000);
  await eventually(() => assert.deepEqual(received, ['order-2026-000117', 'order-2026-000118']));
  await pool.query(`UPDATE outbox.idempo_ledger SET request_digest = 'another'`);
  assert.deepEqual(await outcomeOf('readme-outbox', 'order'), 'mismatch');
  assert.equal(await reserved(), before + 10_000);
  assert.deepEqual(received, ['order-2026-000117', 'order-2026-000118']);
});

test('the recipe of jobs runs the job', async () => {
  const sent: string[] = [];
  const send = async (to: string): Promise<void> => void sent.push(to);
  const { worker } = await project.run('readme-jobs', { pool, client, to: 'b@example.com', send });
  await eventually(async () => assert.deepEqual(sent, ['b@example.com']));
  await (worker as JobWorker).stop();
});

async function outcomeOf(name: string, result: string, given: object = {}): Promise<string> {
  const results = await project.run(name, { client, ...given });
  return (results[result] as { outcome: string }).outcome;
}

test('the example of jobs sends the mail once, and gives up on an address that does not exist', async () => {
  const sent: string[] = [];
  const send = async ({ to }: { to: string }): Promise<number> => {
    sent.push(to);
    return to.startsWith('nobody') ? 550 : 250;
  };
  const statusOf = async (to: string) =>
    (
      await pool.query<{ status: string }>(`SELECT status FROM jobs.job_queue WHERE payload ->> 'to' = $1`, [
        to,
      ])
    ).rows[0]?.status;
  for (const [to, status] of [
    ['a@example.com', 'completed'],
    ['nobody@example.com', 'dead_letter'],
  ] as const) {
    const { worker } = await project.run('jobs', { pool, client, to, send });
    await eventually(async () => assert.equal(await statusOf(to), status));
    await (worker as JobWorker).stop();
  }
  assert.deepEqual(sent, ['a@example.com', 'nobody@example.com']);
});

test('the example of sagas reserves once, and a refusal of its participant ends the saga', async () => {
  const reserved: string[] = [];
  const given = {
    pool,
    client,
    orderId: 'order-1',
    app,
    reserve: async (_tx: unknown, { sku }: { sku: string }) => {
      if (shop.isSoldOut) return null;
      reserved.push(sku);
      return { id: `r-${reserved.length}` };
    },
    release: async (_tx: unknown, id: string) => void shop.released.push(id),
  };
  const { started } = (await project.run('sagas', given)) as { started: { sagaId: string } };
  await listen();
  await untilSaga(started.sagaId, 'COMPLETED');
  assert.deepEqual(reserved, ['shoe']);

  shop.isSoldOut = true;
  const { body } = await system.api.post<{ saga_id: string }>('/api/v1/sagas', {
    workflow_name: 'place-order',
    payload: { sku: 'shoe', qty: 1 },
  });
  await untilSaga(body.saga_id, 'FAILED');
  assert.deepEqual(shop.released, []);
});

test('the recipe of sagas releases the reservation if shipping refuses, and starts one saga per key', async () => {
  Object.assign(shop, { isSoldOut: false, refusesDispatch: true });
  const given = { client, orderId: 'order-2' };
  const { started } = (await project.run('readme-saga', given)) as { started: { sagaId: string } };
  await untilSaga(started.sagaId, 'FAILED');
  assert.deepEqual(shop.released, ['r-2']);
  assert.equal(await outcomeOf('readme-saga', 'started', given), 'replayed');
});

async function untilSaga(sagaId: string, status: string): Promise<void> {
  await eventually(async () => {
    const { body } = await system.api.get<{ saga: { status: string } }>(`/api/v1/sagas/${sagaId}`);
    assert.equal(body.saga.status, status);
  });
}

test('the examples of the client library run a job, add an order, start a saga and mount a guard', async () => {
  const sent: string[] = [];
  const send = async (to: string): Promise<void> => void sent.push(to);
  const { worker } = await project.run('client-jobs', { pool, client, send });
  await eventually(async () => assert.deepEqual(sent, ['a@example.com']));
  await (worker as JobWorker).stop();
  assert.equal(await outcomeOf('client-outbox', 'order'), 'created');
  assert.equal(await outcomeOf('client-saga', 'started', { orderId: 'order-3' }), 'started');
  const paths: string[] = [];
  const post = (path: string): void => void paths.push(path);
  await project.run('client-guard', { pool, app: { post }, reserve: () => {}, release: () => {} });
  assert.deepEqual(paths, ['/reserve', '/release']);
});

test('the example of a webhook takes what we sign and refuses everything else', async () => {
  const [secret, text] = ['a secret', '{"version":1}'];
  const isGenuine = async (signature: string | undefined, bytes = Buffer.from(text)) => {
    const headers = signature === undefined ? {} : { 'x-redrive-signature': signature };
    return (await project.run('signature', { request: { headers }, secret, bytes }))['isGenuine'];
  };
  const now = new Date();
  const good = signatureOf(text, secret, now);
  assert.equal(await isGenuine(good), true);
  assert.equal(await isGenuine(good, Buffer.from('{"version":2}')), false);
  assert.equal(await isGenuine(signatureOf(text, 'another', now)), false);
  assert.equal(await isGenuine(signatureOf(text, secret, new Date(now.getTime() - 301_000))), false);
  assert.equal(await isGenuine('nonsense'), false);
  assert.equal(await isGenuine(undefined), false);
});
