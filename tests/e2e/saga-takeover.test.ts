import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { migrateDown, readMigrations } from '../../src/platform/postgres/migrate.ts';
import { Sql, sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { createTestDatabase, migrationSources, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import {
  root,
  startSagaSystem,
  step,
  stepWithoutUndo,
  workflowRoot,
  type PresentedSaga,
  type SagaSystem,
} from '../support/saga-system.ts';

/** A database of the system before ours, whose sagas have no definition, is taken over with them. */

type Log = Readonly<{ step: number; name: string; action?: string; status: string; response?: unknown }>;

let database: TestDatabase;
let at: SagaSystem;
const ids: Record<string, string> = {};

async function insertFormer(what: string, status: string, log: readonly Log[] = []): Promise<void> {
  const [row] = await database.db.query<{ id: string }>(sql`
    INSERT INTO saga.saga_states (workflow_name, current_step, status, payload, error_message)
    VALUES ('place-order', ${log.length}, ${status}, '{"sku":"shoe"}',
            ${status === 'COMPENSATING' ? 'no money' : null})
    RETURNING id`);
  ids[what] = row?.id ?? assert.fail();
  for (const { step: index, name, action = 'EXECUTE', status: end, response = null } of log)
    await database.db.query(sql`
      INSERT INTO saga.saga_step_logs
        (saga_id, step_index, step_name, action, status, response_payload, started_at, completed_at)
      VALUES (${ids[what]}, ${index}, ${name}, ${action}, ${end}, ${JSON.stringify(response)}::jsonb,
              now() - interval '1 hour', now() - interval '1 hour')`);
}

const reserved: Log = { step: 0, name: 'reserve', status: 'SUCCESS', response: { id: 'r-1' } };
const notCharged: Log = { step: 1, name: 'charge', status: 'FAILED' };

before(async () => {
  database = await createTestDatabase('empty');
  const migrations = (await readMigrations(migrationSources)).filter(({ slice }) => slice === 'saga');
  for (const { up } of migrations.slice(0, 5)) await database.db.query(new Sql([up], []));
  await insertFormer('started', 'STARTED');
  await insertFormer('running', 'RUNNING', [reserved]);
  await insertFormer('cancelled', 'RUNNING', [reserved]);
  await insertFormer('failing', 'COMPENSATING', [reserved, notCharged]);
  await insertFormer('undoing', 'COMPENSATING', [reserved]);
  await insertFormer('done', 'COMPLETED', [reserved, { step: 1, name: 'charge', status: 'SUCCESS' }]);
  at = await startSagaSystem({ database });
});
after(async () => {
  await at.drop();
  await database.drop();
});

const idOf = (what: string): string => ids[what] ?? assert.fail(what);
const act = (what: string, stepName: string, verb: string, more: object = {}) =>
  at.system.api.post(`${root}/${idOf(what)}/steps/${stepName}/${verb}`, { reason: 'looked at it', ...more });
const register = async (steps: readonly object[]): Promise<void> => {
  const workflow = JSON.stringify({ name: 'place-order', steps });
  const answer = await at.system.api.post(workflowRoot, { workflow_yaml: workflow });
  assert.equal(answer.status, 201, answer.text);
};
const reserve = step('reserve');
const charge = step('charge', { input: { reservation: '${steps.reserve.id}' } });

test('what was not at its end waits for a person, who is told so', async () => {
  const { body } = await at.system.api.get<{ sagas: readonly PresentedSaga[] }>(`${root}?needs_person=true`);
  const waiting = new Map(body.sagas.map((saga) => [saga.saga_id, saga]));
  assert.deepEqual(
    new Set(waiting.keys()),
    new Set(['started', 'running', 'cancelled', 'failing', 'undoing'].map(idOf)),
  );
  for (const { stuck, definition_hash } of waiting.values()) {
    assert.match(stuck?.reason ?? '', /begun without a definition: register the workflow place-order/);
    assert.deepEqual([stuck?.step, definition_hash], [null, null]);
  }
  assert.equal(waiting.get(idOf('started'))?.stuck?.action, 'EXECUTE');
  assert.equal(waiting.get(idOf('failing'))?.stuck?.action, 'COMPENSATE');
  assert.equal((await at.told(idOf('done'))).saga.status, 'COMPLETED');
  const told = await at.system.db.query<{ item_id: string }>(sql`
    SELECT item_id FROM platform.notify_events WHERE slice = 'saga'`);
  assert.equal(told.length, 5);
  await eventually(async () => {
    const metrics = await at.system.api.raw({ method: 'GET', path: '/metrics' });
    assert.match(metrics.text, /^saga_needs_person 5$/m);
  });
});

test('nothing of it goes on before its workflow is registered, and none but its own will do', async () => {
  const unknown = await act('started', 'reserve', 'retry');
  assert.match(
    assertError(unknown, 409, 'SYS_SAGA_CONFLICT').message,
    /register the workflow place-order first/,
  );
  assertError(await at.system.api.post(`${root}/${idOf('running')}/cancel`, {}), 409, 'SYS_SAGA_CONFLICT');

  await register([step('charge'), step('reserve')]);
  const other = assertError(await act('running', 'reserve', 'retry'), 409, 'SYS_SAGA_CONFLICT');
  assert.match(other.message, /is not the one .*: step 0 was reserve and is charge$/);
  await register([reserve]);
  const short = assertError(await act('running', 'reserve', 'retry'), 409, 'SYS_SAGA_CONFLICT');
  assert.match(short.message, /by its log it would be COMPLETED and is RUNNING$/);
  await register([reserve, stepWithoutUndo('charge', { pivot: true })]);
  const beyond = await at.system.api.post(`${root}/${idOf('running')}/cancel`, {});
  assert.match(assertError(beyond, 409, 'SYS_SAGA_CONFLICT').message, /beyond its pivot/);
  assert.equal((await at.told(idOf('running'))).saga.definition_hash, null);
});

test('with its workflow it goes on as a person says, from where it stood', async () => {
  await register([reserve, charge]);
  assert.equal((await at.told(idOf('running'))).saga.stuck?.step, 'charge');

  assert.equal((await act('started', 'reserve', 'retry')).status, 200);
  await at.becomes(idOf('started'), 'COMPLETED');

  // The step may have been called, so what a person has seen counts only when no call can arrive any more.
  assertError(await act('running', 'charge', 'resolve', { outcome: 'not_done' }), 409, 'SYS_SAGA_CONFLICT');
  assert.equal((await act('running', 'charge', 'retry')).status, 200);
  const { saga, step_logs } = await at.becomes(idOf('running'), 'COMPLETED');
  assert.match(saga.definition_hash ?? '', /^sha256:/);
  const sent = step_logs.at(-1);
  assert.deepEqual([sent?.step_name, sent?.request_payload], ['charge', { reservation: 'r-1' }]);
  assert.ok(step_logs.every(({ step_name }) => step_name !== ''));
});

test('it is undone as one of ours, with the step that may have been called', async () => {
  const answer = await at.system.api.post(`${root}/${idOf('cancelled')}/cancel`, { reason: 'too old' });
  assert.equal(answer.status, 200, answer.text);
  const undosOf = async (what: string, status: string): Promise<readonly string[]> =>
    (await at.becomes(idOf(what), status)).step_logs
      .filter(({ action, status: end }) => action === 'COMPENSATE' && end === 'SUCCESS')
      .map(({ step_name }) => step_name)
      .toSorted();
  assert.deepEqual(await undosOf('cancelled', 'CANCELLED'), ['charge', 'reserve']);

  assert.equal((await act('failing', 'charge', 'retry')).status, 200);
  assert.deepEqual(await undosOf('failing', 'FAILED'), ['charge', 'reserve']);
  assert.equal((await act('undoing', 'reserve', 'retry')).status, 200);
  assert.deepEqual(await undosOf('undoing', 'FAILED'), ['reserve']);
});

test('one that somebody inserts later degrades readiness until a person is asked about it', async () => {
  type Readiness = Readonly<{ checks: Readonly<Record<string, Readonly<{ message?: string }>>> }>;
  const messageOf = async (): Promise<string> =>
    (await at.system.api.get<Readiness>('/readyz')).body.checks['workflows']?.message ?? '';
  await eventually(async () => assert.equal(await messageOf(), ''));
  await database.db.query(sql`INSERT INTO saga.saga_states (workflow_name) VALUES ('by-hand')`);
  await eventually(async () =>
    assert.match(await messageOf(), /sagas without a definition.*saga\.ask_about_unknown/),
  );
  const [asked] = await database.db.query<{ count: bigint }>(sql`SELECT saga.ask_about_unknown() AS count`);
  assert.equal(asked?.count, 1n);
  await eventually(async () => assert.equal(await messageOf(), ''));
});

test('the migrations can be taken back to those of the system before ours', async () => {
  await at.system.stop();
  await migrateDown(database.db, migrationSources, { slice: 'saga', to: 5 });
  const [row] = await database.db.query<{ count: bigint }>(
    sql`SELECT count(*) AS count FROM saga.saga_states`,
  );
  assert.equal(row?.count, 7n);
});
