import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, type Answer } from '../support/api-client.ts';
import {
  root,
  startSagaSystem,
  step,
  stepWithoutUndo,
  workflowRoot,
  type SagaSystem,
} from '../support/saga-system.ts';

/** What lists of sagas and workflows can be asked. Nobody runs sagas here: they stay as they were started. */
let at: SagaSystem;
before(async () => void (at = await startSagaSystem({ env: { ROLES: 'api' } })));
after(() => at.drop());

type Fields = Readonly<Record<string, unknown>>;
type Page = Readonly<{ sagas: readonly Fields[]; pagination: Fields }>;

const idsOf = ({ sagas }: Page): readonly unknown[] => sagas.map(({ saga_id }) => saga_id);
const postWorkflow = (workflow: Fields): Promise<Answer<Fields>> =>
  at.system.api.post(workflowRoot, { workflow_yaml: JSON.stringify(workflow) });
const postSaga = (body: Fields, headers: Readonly<Record<string, string>> = {}): Promise<Answer<Fields>> =>
  at.system.api.post(root, body, headers);

test('each definition says how many unfinished sagas keep it', async () => {
  const name = await at.register([step('old')]);
  const [waiting, stuck] = [await at.start(name), await at.start(name)];
  await at.system.db.query(sql`
    UPDATE saga.saga_states
    SET status = 'RUNNING', needs_attention = true, stuck_step = 0, stuck_op = 'EXECUTE', stuck_reason = 'why'
    WHERE id = ${stuck}`);
  const ended = await at.start(name);
  await at.system.db.query(sql`UPDATE saga.saga_states SET status = 'COMPLETED' WHERE id = ${ended}`);
  await postWorkflow({ name, steps: [step('new')] });
  await at.start(name);
  const { body } = await at.system.api.get<Fields>(`${workflowRoot}/${name}`);
  assert.deepEqual([body['unfinished'], body['needs_attention']], [3, 1]);
  const definitions = body['definitions'] as readonly Fields[];
  assert.deepEqual(
    definitions.map((each) => [each['is_current'], each['unfinished'], each['needs_attention']]),
    [
      [true, 1, 0],
      [false, 2, 1],
    ],
  );
  const { definition_hash } = (await at.told(waiting)).saga;
  assert.equal(definitions[1]?.['hash'], definition_hash);
  const kept = await at.system.api.get<Page>(`${root}?definition_hash=${definition_hash}&status=STARTED`);
  assert.deepEqual(
    kept.body.sagas.map(({ saga_id }) => saga_id),
    [waiting],
  );
});

test('filters say at which step, with which key, for which service and since when', async () => {
  const name = await at.register([step('a'), stepWithoutUndo('b')]);
  const key = `started-${name}`;
  const keyed = await postSaga({ workflow_name: name }, { 'Idempotency-Key': key });
  const first = String(keyed.body['saga_id']);
  const [second, done] = [await at.start(name), await at.start(name)];
  await at.system.db.query(sql`
    UPDATE saga.saga_states SET status = 'RUNNING', current_step = 1, waiting_for = 'shop', waiting_since = now()
    WHERE id = ${second}`);
  await at.system.db.query(sql`
    UPDATE saga.saga_states SET status = 'COMPLETED', current_step = 2, created_at = created_at - interval '1 day'
    WHERE id = ${done}`);
  const read = async (query: string): Promise<readonly unknown[]> =>
    idsOf((await at.system.api.get<Page>(`${root}?workflow_name=${name}&${query}`)).body);
  assert.deepEqual(await read('step=a'), [first]);
  assert.deepEqual(await read('step=b'), [second]);
  assert.deepEqual(await read('step=nowhere'), []);
  assert.deepEqual(await read(`key=${encodeURIComponent(key)}`), [first]);
  assert.deepEqual(await read('waiting_for=shop'), [second]);
  const hourAgo = encodeURIComponent(new Date(Date.now() - 3_600_000).toISOString());
  assert.deepEqual(await read(`until=${hourAgo}`), [done]);
  assert.deepEqual(new Set(await read(`since=${hourAgo}`)), new Set([first, second]));
  assertError(await at.system.api.get(`${root}?since=yesterday`), 400, 'SYS_SAGA_VALIDATION_ERROR');

  const facets = await at.system.api.get<Fields>(`${root}/facets?workflow_name=${name}`);
  const { as_of, ...counted } = facets.body;
  assert.equal(typeof as_of, 'string');
  const once = (...values: string[]): readonly Fields[] => values.map((value) => ({ value, count: 1 }));
  assert.deepEqual(counted, {
    total_count: 3,
    needs_attention: 0,
    facets: {
      status: once('COMPLETED', 'RUNNING', 'STARTED'),
      workflow_name: [{ value: name, count: 3 }],
      step: once('a', 'b'),
      waiting_for: once('shop'),
    },
  });
});

test('a list shows only the fields that are asked for, and how new it is', async () => {
  const name = await at.register([step('a')]);
  const id = await at.start(name);
  const { body } = await at.system.api.get<Page & Fields>(
    `${root}?workflow_name=${name}&fields=status&fields=steps`,
  );
  const [saga] = body.sagas;
  assert.deepEqual(Object.keys(saga ?? {}).toSorted(), ['saga_id', 'status', 'steps']);
  assert.deepEqual([saga?.['saga_id'], saga?.['status']], [id, 'STARTED']);
  assert.ok(Math.abs(Date.now() - Date.parse(String(body['as_of']))) < 60_000);
  assertError(await at.system.api.get(`${root}?fields=step`), 400, 'SYS_SAGA_VALIDATION_ERROR');
});
