import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { migrateDown, migrateUp, readMigrations } from '../../src/platform/postgres/migrate.ts';
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

type Log = Readonly<{
  step: number;
  name: string;
  action?: string;
  status: string;
  response?: unknown;
  /** As the system before ours wrote down that it was still running. */
  hasNoEnd?: boolean;
}>;

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
  for (const { step: index, name, action = 'EXECUTE', status: end, response = null, hasNoEnd = false } of log)
    await database.db.query(sql`
      INSERT INTO saga.saga_step_logs
        (saga_id, step_index, step_name, action, status, response_payload, started_at, completed_at)
      VALUES (${ids[what]}, ${index}, ${name}, ${action}, ${end}, ${JSON.stringify(response)}::jsonb,
              now() - interval '1 hour', ${hasNoEnd ? sql`NULL` : sql`now() - interval '1 hour'`})`);
}

const reserved: Log = { step: 0, name: 'reserve', status: 'SUCCESS', response: { id: 'r-1' } };
const charged: Log = { step: 1, name: 'charge', status: 'SUCCESS' };
const notCharged: Log = { step: 1, name: 'charge', status: 'FAILED' };
const undone = (log: Log): Log => ({ ...log, action: 'COMPENSATE', response: null });

/** Those that have not ended, with what the system before ours knew of them. */
const waiting: Readonly<Record<string, readonly [status: string, log: readonly Log[]]>> = {
  started: ['STARTED', []],
  calling: ['STARTED', []],
  running: ['RUNNING', [reserved]],
  cancelled: ['RUNNING', [reserved]],
  'without an end': ['RUNNING', [reserved, { ...charged, hasNoEnd: true }]],
  complete: ['RUNNING', [reserved, charged]],
  'called off': ['RUNNING', [reserved, charged]],
  failing: ['COMPENSATING', [reserved, notCharged]],
  undoing: ['COMPENSATING', [reserved]],
  turned: ['COMPENSATING', [reserved, undone(reserved)]],
  'turned at once': ['COMPENSATING', []],
  'left alone': ['COMPENSATING', [reserved, charged]],
  undone: ['COMPENSATING', [reserved, charged, undone(charged), undone(reserved)]],
};

before(async () => {
  database = await createTestDatabase('empty');
  const migrations = (await readMigrations(migrationSources)).filter(({ slice }) => slice === 'saga');
  for (const { up } of migrations.slice(0, 5)) await database.db.query(new Sql([up], []));
  for (const [what, [status, log]] of Object.entries(waiting)) await insertFormer(what, status, log);
  await insertFormer('done', 'COMPLETED', [reserved, { ...charged, hasNoEnd: true }]);
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
  const { body } = await at.system.api.get<{ sagas: readonly PresentedSaga[] }>(
    `${root}?needs_attention=true`,
  );
  const found = new Map(body.sagas.map((saga) => [saga.saga_id, saga]));
  assert.deepEqual(new Set(found.keys()), new Set(Object.keys(waiting).map(idOf)));
  for (const { stuck, definition_hash } of found.values()) {
    assert.match(stuck?.reason ?? '', /begun without a definition: register the workflow place-order/);
    assert.deepEqual([stuck?.step, definition_hash], [null, null]);
  }
  assert.equal(found.get(idOf('started'))?.stuck?.action, 'EXECUTE');
  assert.equal(found.get(idOf('failing'))?.stuck?.action, 'COMPENSATE');
  const { saga, step_logs } = await at.told(idOf('done'));
  assert.deepEqual(
    [saga.status, step_logs.map(({ status }) => status)],
    ['COMPLETED', ['SUCCESS', 'SUCCESS']],
  );
  const told = await at.system.db.query<{ item_id: string }>(sql`
    SELECT item_id FROM platform.notify_events WHERE slice = 'saga'`);
  assert.equal(told.length, found.size);
  await eventually(async () => {
    const metrics = await at.system.api.raw({ method: 'GET', path: '/metrics' });
    assert.match(metrics.text, new RegExp(`^saga_needs_attention ${found.size}$`, 'm'));
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
  const short = assertError(await act('complete', 'reserve', 'retry'), 409, 'SYS_SAGA_CONFLICT');
  assert.match(short.message, /is not the one .*: step 1 was charge and is missing$/);
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

/** What was called for it here, in this order, until it ended so. */
const callsUntil = async (what: string, status: string): Promise<readonly string[]> => {
  await at.becomes(idOf(what), status);
  return at.shop.callsOf(idOf(what));
};

test('it is undone as one of ours, with the step that may have been called', async () => {
  for (const what of ['cancelled', 'calling']) {
    const answer = await at.system.api.post(`${root}/${idOf(what)}/cancel`, { reason: 'too old' });
    assert.equal(answer.status, 200, answer.text);
  }
  assert.deepEqual(await callsUntil('cancelled', 'CANCELLED'), ['undo charge', 'undo reserve']);
  assert.deepEqual(await callsUntil('calling', 'CANCELLED'), ['undo reserve']);

  assert.equal((await act('failing', 'charge', 'retry')).status, 200);
  assert.deepEqual(await callsUntil('failing', 'FAILED'), ['undo charge', 'undo reserve']);
  assert.equal((await act('undoing', 'reserve', 'retry')).status, 200);
  assert.deepEqual(await callsUntil('undoing', 'FAILED'), ['undo charge', 'undo reserve']);
  assert.match((await at.told(idOf('undoing'))).saga.error_message ?? '', /turned round: no money$/);
  assert.equal((await act('turned', 'reserve', 'resolve')).status, 200);
  assert.deepEqual(await callsUntil('turned', 'FAILED'), ['undo charge']);
  assert.equal((await act('turned at once', 'reserve', 'retry')).status, 200);
  assert.deepEqual(await callsUntil('turned at once', 'FAILED'), ['undo reserve']);
});

test('an attempt that has no end is in doubt, whatever its status was', async () => {
  assert.equal((await at.told(idOf('without an end'))).saga.stuck?.step, 'charge');
  assert.equal((await act('without an end', 'charge', 'retry')).status, 200);
  const { step_logs } = await at.becomes(idOf('without an end'), 'COMPLETED');
  const ends = step_logs.filter(({ step_name }) => step_name === 'charge').map(({ status }) => status);
  assert.deepEqual(ends, ['TIMEOUT', 'FAILED', 'SUCCESS']);
});

test('one that had done or undone everything is ended by a person, with nothing more called', async () => {
  // Whether there was a further step is known only with the workflow.
  const moved = assertError(await act('complete', 'charge', 'retry'), 409, 'SYS_SAGA_CONFLICT');
  assert.match(
    moved.message,
    /has done every step .*: it is now stuck at charge, and retrying that ends it$/,
  );
  assert.equal((await at.told(idOf('complete'))).saga.stuck?.step, 'charge');
  await register([reserve, charge, step('ship')]);
  const further = assertError(await act('complete', 'charge', 'retry'), 409, 'SYS_SAGA_CONFLICT');
  assert.match(further.message, /has more steps .*: it is now stuck at ship$/);
  await register([reserve, charge]);
  assertError(await act('complete', 'ship', 'retry'), 409, 'SYS_SAGA_CONFLICT');

  const ended = await act('complete', 'charge', 'retry');
  assert.deepEqual([ended.status, (ended.body as { status: string }).status], [200, 'COMPLETED']);
  const complete = await at.told(idOf('complete'));
  assert.equal(complete.saga.current_step, 2);
  assert.deepEqual(
    complete.step_logs.map(({ step_name, status }) => [step_name, status]),
    [
      ['reserve', 'SUCCESS'],
      ['charge', 'SUCCESS'],
    ],
  );

  assert.equal((await at.told(idOf('undone'))).saga.stuck?.step, 'charge');
  assert.equal((await act('undone', 'charge', 'retry')).status, 200);
  const { saga, step_logs } = await at.told(idOf('undone'));
  assert.deepEqual([saga.status, saga.compensation], ['FAILED', 'done']);
  assert.ok(step_logs.every(({ step_index }) => step_index < 2));
  for (const what of ['complete', 'undone']) assert.deepEqual(at.shop.callsOf(idOf(what)), []);
});

test('one that had done everything can be cancelled all the same', async () => {
  const cancel = () => at.system.api.post(`${root}/${idOf('called off')}/cancel`, { reason: 'too old' });
  assertError(await cancel(), 409, 'SYS_SAGA_CONFLICT');
  assert.equal((await cancel()).status, 200);
  assert.deepEqual(await callsUntil('called off', 'CANCELLED'), ['undo charge', 'undo reserve']);
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

test('the migrations can be taken back to those of the system before ours, and applied again', async () => {
  await at.system.stop();
  await migrateDown(database.db, migrationSources, { slice: 'saga', to: 5 });
  const [row] = await database.db.query<{ count: bigint }>(
    sql`SELECT count(*) AS count FROM saga.saga_states`,
  );
  assert.equal(row?.count, BigInt(Object.keys(ids).length + 1));
  await migrateUp(database.db, migrationSources);
  // What was noted of a step beyond its workflow when it was asked about first is none of its steps.
  const [again] = await database.db.query<{ stuck_step: number }>(sql`
    SELECT stuck_step FROM saga.saga_states WHERE id = ${idOf('left alone')}`);
  assert.equal(again?.stuck_step, charged.step);
});
