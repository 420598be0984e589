import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { emptySagas } from '../../../tests/support/empty-sagas.ts';
import { openSagaScene, stepOf, type SagaScene } from '../../../tests/support/saga-engine.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { endProbe, hasWork, openCircuit, wakeProbe, type EndedProbe } from './circuit-table.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());
beforeEach(async () => {
  await emptySagas(at.db);
  await at.db.query(sql`DELETE FROM saga.service_circuits`);
  await openCircuit(at.db, 'shop', 'ECONNREFUSED');
});

async function waitingSaga(): Promise<string> {
  const id = await at.start({ name: 'order', deadlineMs: null, steps: [stepOf('reserve')] });
  await at.db.query(sql`
    UPDATE saga.saga_states
    SET waiting_for = 'shop', waiting_since = now(), wake_at = now() + interval '5 minutes' WHERE id = ${id}`);
  return id;
}

const endShop = (sagaId: EndedProbe['sagaId'], end: EndedProbe['end']): Promise<void> =>
  endProbe(at.db, { service: 'shop', sagaId, end });

const probesOf = async (): Promise<unknown> => {
  const [row] = await at.db.query<{ probes: number; probe_saga: string | null }>(sql`
    SELECT probes, probe_saga FROM saga.service_circuits`);
  return [row?.probes, row?.probe_saga];
};

test('one of the waiting sagas becomes the probe, unless none waits or all are busy', async () => {
  assert.equal(await wakeProbe(at.db, 'shop'), 'none');
  const id = await waitingSaga();
  await at.db.transaction(async (tx) => {
    await tx.query(sql`SELECT 1 FROM saga.saga_states WHERE id = ${id} FOR UPDATE`);
    assert.equal(await wakeProbe(at.db, 'shop'), 'busy');
  });
  await at.db.query(sql`
    UPDATE saga.saga_states SET lease_owner = 'somebody', lease_until = now() WHERE id = ${id}`);
  assert.equal(await wakeProbe(at.db, 'shop'), 'busy');
  await at.db.query(sql`UPDATE saga.saga_states SET lease_owner = NULL, lease_until = NULL`);
  assert.equal(await wakeProbe(at.db, 'shop'), 'woken');
  assert.deepEqual(await probesOf(), [0, id]);
});

test('the end of an earlier probe does not change the current one', async () => {
  const late = crypto.randomUUID();
  const id = await waitingSaga();
  assert.equal(await wakeProbe(at.db, 'shop'), 'woken');
  for (const end of ['failed', 'unused'] as const) {
    await endShop(late, end);
    await endShop(null, end);
    assert.deepEqual(await probesOf(), [0, id]);
  }
  await endShop(id, 'failed');
  assert.deepEqual(await probesOf(), [1, null]);
  await endShop(null, 'failed');
  assert.deepEqual(await probesOf(), [2, null]);
});

test('there is work while there is a circuit, or a saga that waits for a service', async () => {
  assert.equal(await hasWork(at.db), true);
  await at.db.query(sql`DELETE FROM saga.service_circuits`);
  assert.equal(await hasWork(at.db), false);
  await waitingSaga();
  assert.equal(await hasWork(at.db), true);
});
