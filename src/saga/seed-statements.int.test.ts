import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { Client } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import { emptySagas } from '../../tests/support/empty-sagas.ts';

/** The statements of the original design, word for word: programs written for it keep working. */
const createSaga = `
INSERT INTO saga.saga_states (
    id, workflow_name, current_step, status, payload, correlation_id, initiated_by
) VALUES ($1, $2, 0, 'STARTED', $3, $4, $5)
RETURNING *;`;

const updateSaga = `
  UPDATE saga.saga_states
  SET current_step = $2,
      status = $3,
      error_message = $4,
      updated_at = NOW()
  WHERE id = $1;`;

const insertLog = `
  INSERT INTO saga.saga_step_logs (
    id, saga_id, step_index, step_name, action, status,
    request_payload, response_payload, error_message,
    started_at, completed_at
  ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11);`;

const findSaga = 'SELECT * FROM saga.saga_states WHERE id = $1;';

const listLogs = `
SELECT * FROM saga.saga_step_logs
WHERE saga_id = $1
ORDER BY step_index ASC, started_at ASC;`;

const recover = `
SELECT * FROM saga.saga_states
WHERE status IN ('STARTED', 'RUNNING', 'COMPENSATING')
ORDER BY created_at ASC;`;

const list = `
SELECT * FROM saga.saga_states
WHERE
    ($1::VARCHAR IS NULL OR workflow_name = $1)
    AND ($2::VARCHAR IS NULL OR status = $2)
    AND ($3::VARCHAR IS NULL OR correlation_id = $3)
ORDER BY created_at DESC
LIMIT $4 OFFSET $5;`;

const count = `
SELECT COUNT(*) FROM saga.saga_states
WHERE
    ($1::VARCHAR IS NULL OR workflow_name = $1)
    AND ($2::VARCHAR IS NULL OR status = $2)
    AND ($3::VARCHAR IS NULL OR correlation_id = $3);`;

let database: TestDatabase;
let client: Client;
before(async () => {
  database = await createTestDatabase();
  client = new Client({ connectionString: database.url });
  await client.connect();
});
after(async () => {
  await client.end();
  await database.drop();
});

async function rows(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
  return (await client.query<Row>(text, [...values])).rows;
}

type Row = Readonly<Record<string, unknown>>;

async function newSaga(): Promise<string> {
  const id = randomUUID();
  await rows(createSaga, [id, 'place-order', { sku: 'shoe' }, 'order-1', 'shop']);
  return id;
}

/** One round of the original repository: the state and its log row in one transaction. */
async function record(
  sagaId: string,
  { step = 0, action = 'EXECUTE', status = 'SUCCESS', output = null as unknown },
): Promise<void> {
  await client.query('BEGIN');
  await rows(updateSaga, [sagaId, step + 1, 'RUNNING', null]);
  const [started, completed] = [new Date(), new Date()];
  const log = [randomUUID(), sagaId, step, `step-${step}`, action, status];
  await rows(insertLog, [...log, { sku: 'shoe' }, output, null, started, completed]);
  await client.query('COMMIT');
}

test('a saga of the original design is created, updated with its log rows, read and listed', async () => {
  const id = await newSaga();
  await record(id, { output: { id: 'r-1' } });
  await record(id, { step: 1, status: 'FAILED' });
  await record(id, { step: 1, status: 'TIMEOUT' });
  await record(id, { step: 0, action: 'COMPENSATE', status: 'SKIPPED' });
  const [saga] = await rows(findSaga, [id]);
  assert.deepEqual([saga?.['status'], saga?.['correlation_id']], ['RUNNING', 'order-1']);
  const logs = await rows(listLogs, [id]);
  assert.deepEqual(
    logs.map((log) => [log['step_name'], log['action'], log['status'], log['attempt']]),
    [
      ['step-0', 'EXECUTE', 'SUCCESS', 1],
      ['step-0', 'COMPENSATE', 'SKIPPED', 1],
      ['step-1', 'EXECUTE', 'FAILED', 1],
      ['step-1', 'EXECUTE', 'TIMEOUT', 2],
    ],
  );
  assert.deepEqual((await rows(list, ['place-order', 'RUNNING', 'order-1', 10, 0])).length, 1);
  assert.deepEqual(await rows(count, ['place-order', null, null]), [{ count: '1' }]);
});

test('a log row of the original design says what became of its call, as far as that is known', async () => {
  const id = await newSaga();
  for (const status of ['SUCCESS', 'FAILED', 'TIMEOUT', 'SKIPPED']) await record(id, { status });
  assert.deepEqual(
    (await rows(listLogs, [id])).map((log) => [
      log['status'],
      log['answer'],
      log['is_unsent'],
      log['is_last'],
    ]),
    [
      ['SUCCESS', 'done', false, false],
      ['FAILED', 'unknown', false, true],
      ['TIMEOUT', 'unknown', false, true],
      ['SKIPPED', null, true, false],
    ],
  );
});

test('the recovery query of the original design finds a few unfinished sagas among many by an index', async () => {
  await emptySagas(database.db);
  await client.query(`
    INSERT INTO saga.saga_states (workflow_name, status, lease_epoch)
    SELECT 'order', CASE n % 10000 WHEN 0 THEN 'RUNNING' WHEN 1 THEN 'STARTED' WHEN 2 THEN 'COMPENSATING' ELSE 'COMPLETED' END, 1
    FROM generate_series(1, 100000) n`);
  await client.query('VACUUM ANALYZE saga.saga_states');
  assert.equal((await rows(recover)).length, 30);
  const plan = await rows(`EXPLAIN (ANALYZE, TIMING OFF) ${recover}`);
  const text = plan.map((line) => String(line['QUERY PLAN'])).join('\n');
  assert.match(text, /Index Scan using idx_saga_states_unfinished/);
  assert.doesNotMatch(text, /Rows Removed by Filter|Sort/);
});

test('neither sagas nor their log can be deleted or truncated away', async () => {
  const id = await newSaga();
  await record(id, {});
  for (const statement of [
    'DELETE FROM saga.saga_states',
    'TRUNCATE saga.saga_states CASCADE',
    'TRUNCATE saga.saga_states, saga.saga_step_logs',
    'TRUNCATE saga.saga_step_logs',
    'TRUNCATE saga.workflow_definitions CASCADE',
  ])
    await assert.rejects(client.query(statement), { code: '23001' }, statement);
  assert.equal((await rows(listLogs, [id])).length, 1);
});
