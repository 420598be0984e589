import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Pool } from 'pg';
import { call, saga, service } from '../../src/sdk/index.ts';
import { startGrpcInventory, type GrpcInventory } from '../support/grpc-inventory.ts';
import { startSagaSystem, workflowRoot, type SagaSystem } from '../support/saga-system.ts';

/** A workflow in TypeScript, begun in the transaction of a service, with a participant over gRPC and one over HTTP. */
type Order = Readonly<{ sku: string; qty: number }>;

const inventory = {
  reserve: call<Order, Readonly<{ reservation_id: string }>>('shop.inventory.v1.InventoryService.Reserve'),
  release: call<Readonly<{ reservation_id?: string }>>('shop.inventory.v1.InventoryService.Release'),
};
const byFile = service('by_file', inventory);
const byReflection = service('by_reflection', inventory);
const shop = service('shop', {
  charge: call<Readonly<{ for: string }>>('POST /charge'),
  refund: call('POST /refund'),
});

let at: SagaSystem;
let stock: GrpcInventory;
let pool: Pool;
before(async () => {
  stock = await startGrpcInventory();
  const grpc = { type: 'grpc', host: '127.0.0.1', port: stock.port };
  at = await startSagaSystem({
    services: {
      by_file: { ...grpc, proto: stock.protoFolder },
      by_reflection: { ...grpc, reflection: true },
    },
  });
  pool = new Pool({ connectionString: at.system.database.url });
});
after(async () => {
  await pool?.end();
  await at?.drop();
  stock?.stop();
});

for (const [how, stockService] of [
  ['its .proto files', byFile],
  ['reflection', byReflection],
] as const) {
  const workflow = saga<Order>(`order-by-${how.split(' ').at(-1)}`.replace('.', ''), { deadline: '1h' })
    .step('reserve', {
      do: ({ input }) => stockService.reserve({ sku: input.sku, qty: input.qty }),
      undo: ({ own }) => stockService.release({ reservation_id: own.reservation_id }),
    })
    .step('charge', {
      do: ({ steps }) => shop.charge({ for: steps.reserve.reservation_id }),
      undo: () => shop.refund({}),
    })
    .build();

  test(`a saga with a participant known by ${how} begins with the commit, and goes through`, async () => {
    const registered = await at.system.api.post<{ hash: string }>(workflowRoot, {
      workflow_yaml: workflow.text,
    });
    assert.deepEqual([registered.status, registered.body.hash], [201, workflow.hash]);
    const client = await pool.connect();
    const before = stock.calls.length;
    await client.query('BEGIN');
    const started = await saga.start(client, workflow, { sku: 'shoe', qty: 2 }, { key: `k-${how.length}` });
    assert.equal(started.outcome, 'started');
    const again = await saga.start(client, workflow, { sku: 'shoe', qty: 2 }, { key: `k-${how.length}` });
    assert.deepEqual(again, { outcome: 'replayed', sagaId: started.sagaId });
    const other = await saga.start(client, workflow, { sku: 'shoe', qty: 3 }, { key: `k-${how.length}` });
    assert.equal(other.outcome, 'mismatch');
    assert.equal(stock.calls.length, before, 'nothing is called before the commit');
    await client.query('COMMIT');
    client.release();
    const { step_logs } = await at.becomes(started.sagaId ?? '', 'COMPLETED');
    const reserved = stock.calls.at(-1);
    assert.deepEqual([reserved?.method, reserved?.request['qty']], ['Reserve', '2']);
    assert.deepEqual(reserved?.metadata.get('saga-id'), [started.sagaId]);
    assert.equal(step_logs.length, 2);
  });

  test(`after a refusal a participant known by ${how} is told to undo what it answered`, async () => {
    at.shop.setScript(({ path }) =>
      path === '/charge' ? { status: 409, body: { error: 'declined' } } : undefined,
    );
    const client = await pool.connect();
    const started = await saga.start(client, workflow, { sku: 'shoe', qty: 1 });
    client.release();
    await at.becomes(started.sagaId ?? '', 'FAILED');
    const [reserve, release] = stock.calls.slice(-2);
    assert.deepEqual([reserve?.method, release?.method], ['Reserve', 'Release']);
    assert.match(String(release?.request['reservation_id']), /^r-\d+$/);
    at.shop.setScript(() => undefined);
  });

  test(`what a participant known by ${how} refuses ends the saga`, async () => {
    const client = await pool.connect();
    const started = await saga.start(client, workflow, { sku: 'sold-out', qty: 1 });
    client.release();
    const { saga: ended } = await at.becomes(started.sagaId ?? '', 'FAILED');
    assert.match(ended.error_message ?? '', /sold out/);
  });
}

test('what cannot be stored is refused before the database is asked, and a rollback leaves nothing', async () => {
  const client = await pool.connect();
  await client.query('BEGIN');
  await assert.rejects(saga.start(client, 'no-such', []), /payload is an object/);
  const wide = { n: Array<number>(60_000).fill(1e308) };
  await assert.rejects(saga.start(client, 'no-such', wide), /at most 16777216 are accepted/);
  await assert.rejects(saga.start(client, 'no-such', { a: '\0' }), /NUL/);
  await assert.rejects(saga.start(client, 'no-such', {}, { key: 'ü' }), /visible ASCII/);
  await assert.rejects(saga.start(client, 'x'.repeat(300), {}), /1 to 255/);
  assert.deepEqual(await saga.start(client, 'no-such', {}), {
    outcome: 'unknown_workflow',
    sagaId: null,
    reason: 'no workflow no-such is registered',
  });
  await client.query('ROLLBACK');
  client.release();
  await assert.rejects(saga.start(pool, 'no-such', {}), /tx is a pool/);
});
