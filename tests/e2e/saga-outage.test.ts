import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { startGrpcInventory, type GrpcInventory } from '../support/grpc-inventory.ts';
import { startParticipant, type Participant } from '../support/saga-participant.ts';
import { startSagaSystem, step, type SagaSystem, type ToldSaga } from '../support/saga-system.ts';

/** Services that are down for a while, and come back on the same address. The shop stays: it refuses what is next. */
let at: SagaSystem;
let till: Participant;
let stock: GrpcInventory;
before(async () => {
  till = await startParticipant();
  stock = await startGrpcInventory();
  at = await startSagaSystem({
    services: {
      till: { type: 'http', base_url: till.url },
      stock: { type: 'grpc', host: '127.0.0.1', port: stock.port, reflection: true },
    },
  });
});
after(async () => {
  await at.drop();
  await till.stop();
  stock.stop();
});

const portOf = ({ url }: Participant): number => Number(new URL(url).port);
const withinMs = 120_000;

/** Without it the probes are due 5, 15, 35 and 75 seconds after the service was seen to be down. */
async function probeNow(service: string): Promise<void> {
  await at.system.db.query(sql`
    UPDATE saga.service_circuits SET probe_at = clock_timestamp() WHERE service = ${service}`);
}

/** Refuses what comes to it, but not before it is told to. */
function refuseWhenTold(): () => void {
  const told = Promise.withResolvers<void>();
  at.shop.setScript(async () => {
    await told.promise;
    return { status: 409, body: { error: 'sold out' } };
  });
  return told.resolve;
}

async function startMany(count: number, steps: Parameters<SagaSystem['register']>[0], more = {}) {
  const workflow = await at.register(steps, more);
  return Promise.all(Array.from({ length: count }, () => at.start(workflow)));
}

async function serviceOf(
  name: string,
): Promise<Readonly<{ circuit: string; waiting: number; reason: string | null }>> {
  type Listed = {
    services: readonly { name: string; circuit: string; waiting: number; reason: string | null }[];
  };
  const { body } = await at.system.api.get<Listed>('/api/v1/services');
  return body.services.find((service) => service.name === name) ?? assert.fail(name);
}

const toldOf = (ids: readonly string[]): Promise<readonly ToldSaga[]> => Promise.all(ids.map(at.told));
const grpcStep = step('hold', {
  service: 'stock',
  method: 'shop.inventory.v1.InventoryService.Reserve',
  compensate: 'shop.inventory.v1.InventoryService.Release',
  compensate_input: { reservation_id: '${own.reservation_id}' },
});

test('sagas whose undo meets an outage wait for it and end compensated by themselves, over HTTP and gRPC', async () => {
  const refuse = refuseWhenTold();
  const paid = await startMany(20, [step('pay', { service: 'till' }), step('ship')]);
  const held = await startMany(6, [grpcStep, step('ship')]);
  const all = [...paid, ...held];
  await eventually(async () => assert.ok(all.every((id) => at.shop.callsOf(id).includes('ship'))), {
    withinMs,
  });
  const [tillPort, stockPort] = [portOf(till), stock.port];
  await till.stop();
  stock.stop();
  refuse();
  await eventually(
    async () => {
      const sagas = await toldOf(all);
      const waiting = sagas.filter(({ saga }) => saga.waiting_for !== undefined);
      assert.equal(waiting.length, all.length, JSON.stringify(sagas.find(({ saga }) => !saga.waiting_for)));
    },
    { withinMs },
  );
  const [known] = await toldOf(paid);
  assert.equal(known?.saga.waiting_for?.service, 'till');
  assert.equal(known.saga.status, 'COMPENSATING');
  const { circuit, waiting, reason } = await serviceOf('till');
  assert.deepEqual([circuit, waiting], ['open', 20]);
  assert.match(reason ?? '', /ECONNREFUSED/);
  assert.equal((await serviceOf('shop')).circuit, 'closed', 'another service is not concerned');

  till = await startParticipant(tillPort);
  stock = await startGrpcInventory(stockPort);
  for (const service of ['till', 'stock']) await probeNow(service);
  await eventually(
    async () => {
      const ends = (await toldOf(all)).map(
        ({ saga }) => `${saga.status} ${saga.compensation} ${saga.needs_attention}`,
      );
      assert.deepEqual(ends, Array(all.length).fill('FAILED done false'));
    },
    { withinMs },
  );
  for (const id of paid) assert.deepEqual(till.effectsOf(id), ['undo pay']);
  await eventually(async () => assert.equal((await serviceOf('till')).circuit, 'closed'), { withinMs });
});

test('an action waits for a service that is down, and goes on when it is back; or everything is undone in time', async () => {
  at.shop.setScript(() => undefined);
  const tillPort = portOf(till);
  await till.stop();
  const pay = step('pay', { service: 'till', retry: { max_attempts: 2, initial_interval_ms: 50 } });
  const opening = await startMany(6, [step('reserve'), pay]);
  await eventually(async () => assert.equal((await serviceOf('till')).circuit, 'open'), { withinMs });
  const patient = await startMany(4, [step('reserve'), pay]);
  const hasty = await startMany(4, [step('reserve'), pay], { wait_for_service: '500ms' });
  await eventually(
    async () => {
      for (const { saga } of await toldOf(hasty)) assert.equal(saga.status, 'FAILED', JSON.stringify(saga));
      for (const { saga } of await toldOf(patient)) assert.equal(saga.waiting_for?.service, 'till');
    },
    { withinMs },
  );
  for (const id of hasty) assert.deepEqual(at.shop.effectsOf(id), ['reserve', 'undo reserve']);
  const [late] = await toldOf(hasty);
  assert.match(late?.saga.error_message ?? '', /^pay: the service till was unavailable for/);
  till = await startParticipant(tillPort);
  await probeNow('till');
  await eventually(
    async () => {
      for (const { saga } of await toldOf(patient))
        assert.equal(saga.status, 'COMPLETED', JSON.stringify(saga));
      for (const { saga } of await toldOf(opening))
        assert.ok(['COMPLETED', 'FAILED'].includes(saga.status), JSON.stringify(saga));
    },
    { withinMs },
  );
});

test('sagas that need attention because a service was down are retried by themselves when it is back', async () => {
  const refuse = refuseWhenTold();
  const ids = await startMany(8, [step('pay', { service: 'till', undo_for: '1ms' }), step('ship')]);
  await eventually(async () => assert.ok(ids.every((id) => at.shop.callsOf(id).includes('ship'))), {
    withinMs,
  });
  const tillPort = portOf(till);
  await till.stop();
  refuse();
  // Those that came after the circuit was opened waited for it, for as long as their undo is tried.
  await eventually(
    async () => {
      for (const { saga } of await toldOf(ids))
        assert.equal(saga.stuck?.action, 'COMPENSATE', JSON.stringify(saga));
    },
    { withinMs },
  );
  till = await startParticipant(tillPort);
  await probeNow('till');
  await eventually(
    async () => {
      for (const { saga } of await toldOf(ids))
        assert.deepEqual([saga.status, saga.compensation], ['FAILED', 'done'], JSON.stringify(saga));
    },
    { withinMs },
  );
  const [told] = await toldOf(ids);
  assert.ok(told?.step_logs.some(({ actor }) => actor === 'saga.auto_resume'));
});
