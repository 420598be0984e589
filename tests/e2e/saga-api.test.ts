import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, sortedStatuses, type Answer } from '../support/api-client.ts';
import {
  root,
  startSagaSystem,
  step,
  workflowRoot,
  type SagaSystem,
  type ToldSaga,
} from '../support/saga-system.ts';

/** Workflows and sagas over the API. Nobody runs sagas here: they stay as they were started. */
let at: SagaSystem;
before(async () => {
  const grpc = { type: 'grpc', host: '127.0.0.1', port: 1 };
  const proto = fileURLToPath(new URL('../support/protos', import.meta.url));
  at = await startSagaSystem({
    env: { ROLES: 'api' },
    services: { inventory: { ...grpc, proto }, away: { ...grpc, reflection: true } },
  });
});
after(() => at.drop());

type Fields = Readonly<Record<string, unknown>>;
type Page = Readonly<{ sagas: readonly Fields[]; pagination: Fields }>;

const postWorkflow = (workflow: unknown): Promise<Answer<Fields>> =>
  at.system.api.post(workflowRoot, {
    workflow_yaml: typeof workflow === 'string' ? workflow : JSON.stringify(workflow),
  });
const postSaga = (body: Fields, headers: Readonly<Record<string, string>> = {}): Promise<Answer<Fields>> =>
  at.system.api.post(root, body, headers);

describe('workflows', () => {
  const yaml = `
name: place-order
deadline: 30m
steps:
  - name: reserve
    service: inventory
    method: shop.inventory.v1.InventoryService.Reserve
    compensate: shop.inventory.v1.InventoryService.Release
    input: {sku: "\${input.sku}"}
  - {name: pay, service: shop, method: POST /payments, pivot: true}
`;

  test('one is registered from YAML, listed, and shown with its definition', async () => {
    const answer = await postWorkflow(yaml);
    assert.equal(answer.status, 201, answer.text);
    const { hash } = answer.body;
    assert.match(String(hash), /^sha256:[\da-f]{64}$/);
    assert.deepEqual(answer.body, { name: 'place-order', step_count: 2, hash, warnings: [] });

    const list = await at.system.api.get<{ workflows: readonly Fields[] }>(workflowRoot);
    const facts = { name: 'place-order', step_count: 2, step_names: ['reserve', 'pay'], hash };
    assert.deepEqual(
      list.body.workflows.find(({ name }) => name === 'place-order'),
      { ...facts, unfinished: 0, needs_attention: 0 },
    );
    const one = await at.system.api.get<Fields>(`${workflowRoot}/place-order`);
    const { definition, definitions, ...rest } = one.body;
    assert.deepEqual(rest, { ...facts, unfinished: 0, needs_attention: 0, has_more_definitions: false });
    const [current, ...others] = definitions as readonly Fields[];
    assert.deepEqual([current?.['hash'], current?.['is_current'], others], [hash, true, []]);
    assert.deepEqual(current?.['definition'], definition);
    const { deadline_ms, steps } = definition as Readonly<{ deadline_ms: number; steps: readonly Fields[] }>;
    assert.equal(deadline_ms, 1_800_000);
    assert.deepEqual([steps[0]?.['timeout_ms'], steps[1]?.['pivot']], [30_000, true]);
  });

  test('the same again has the same hash, and the last one that came is current', async () => {
    const [first, other] = [
      { name: 'changing', steps: [step('a')] },
      { name: 'changing', steps: [step('b')] },
    ];
    const hashes = [];
    for (const each of [first, other, first]) hashes.push((await postWorkflow(each)).body['hash']);
    assert.equal(hashes[0], hashes[2]);
    assert.notEqual(hashes[0], hashes[1]);
    const { body } = await at.system.api.get<Fields>(`${workflowRoot}/changing`);
    assert.deepEqual([body['hash'], body['step_names']], [hashes[0], ['a']]);
  });

  test('every flaw is told at once, with its place', async () => {
    const { message, details } = assertError(
      await postWorkflow({
        name: 'bad one',
        steps: [
          { name: 'a', servcie: 'shop', method: 'POST /a' },
          { name: 'b', service: 'shop', method: 'GET /b', pivot: true },
          { name: 'c', service: 'shop', method: 'POST /c', pivot: true },
        ],
      }),
      400,
      'SYS_SAGA_VALIDATION_ERROR',
    );
    const fields = details.map(({ field }) => field);
    for (const field of ['name', 'steps.a.servcie', 'steps.b.method', 'steps.c.pivot'])
      assert.ok(fields.includes(field), `${field} in ${fields.join(', ')}`);
    assert.match(
      details.find(({ field }) => field === 'steps.a.servcie')?.message ?? '',
      /did you mean service/,
    );
    assert.match(message, /^invalid workflow: /);
    assertError(await at.system.api.get(`${workflowRoot}/bad%20one`), 404, 'SYS_SAGA_NOT_FOUND');
  });

  test('what is no YAML, no workflow or too much of one is 400', async () => {
    for (const text of [
      '',
      'name: [',
      '[]',
      'null',
      '7',
      'a: &x 1\nb: *x',
      '%YAML 9',
      `# ${'x'.repeat(300_000)}`,
    ])
      assertError(await postWorkflow(text), 400, 'SYS_SAGA_VALIDATION_ERROR');
  });

  test('a gRPC method that the service has not is refused, also as an undo', async () => {
    const wrong = yaml
      .replace('Service.Reserve', 'Service.Reserv')
      .replace('Service.Release', 'Service.Relase');
    const { details } = assertError(await postWorkflow(wrong), 400, 'SYS_SAGA_VALIDATION_ERROR');
    assert.deepEqual(
      details.map(({ field }) => field),
      ['steps.reserve.method', 'steps.reserve.compensate'],
    );
    assert.match(
      details[0]?.message ?? '',
      /has no method shop\.inventory\.v1\.InventoryService\.Reserv; did you mean .*\.Reserve\?$/,
    );
  });

  test('a gRPC method that is a stream is refused: steps call unary methods', async () => {
    const { details } = assertError(
      await postWorkflow(yaml.replace('Service.Reserve', 'Service.Watch')),
      400,
      'SYS_SAGA_VALIDATION_ERROR',
    );
    assert.deepEqual(
      details.map(({ field }) => field),
      ['steps.reserve.method'],
    );
    assert.match(details[0]?.message ?? '', /InventoryService\.Watch .* is a stream/);
  });

  test('a service that is away does not keep its workflows from being registered', async () => {
    const steps = [{ name: 'a', service: 'away', method: 'some.Service.Method' }];
    assert.equal((await postWorkflow({ name: 'far', steps })).status, 201);
  });

  test('one that nobody has registered is 404', async () => {
    assertError(await at.system.api.get(`${workflowRoot}/nothing`), 404, 'SYS_SAGA_NOT_FOUND');
  });
});

describe('starting a saga', () => {
  test('it has everything that it was started with, and what its workflow was then', async () => {
    const name = await at.register([step('a')], { deadline: '1h' });
    const { hash } = (await at.system.api.get<{ hash: string }>(`${workflowRoot}/${name}`)).body;
    const answer = await postSaga({
      workflow_name: name,
      payload: { sku: 'shoe', qty: 2 },
      correlation_id: 'order-117',
      initiated_by: 'web',
    });
    const { saga_id } = answer.body;
    assert.deepEqual([answer.status, answer.body], [201, { saga_id, status: 'STARTED' }]);
    const told = await at.system.api.get<ToldSaga>(`${root}/${String(saga_id)}`);
    assert.deepEqual(Object.keys(told.body), ['saga', 'step_logs']);
    const { created_at, updated_at, deadline_at, next_attempt_at, ...saga } = told.body
      .saga as ToldSaga['saga'] &
      Readonly<{ created_at: string; updated_at: string; next_attempt_at: string | null }>;
    assert.deepEqual(saga, {
      saga_id,
      workflow_name: name,
      current_step: 0,
      status: 'STARTED',
      payload: { sku: 'shoe', qty: 2 },
      correlation_id: 'order-117',
      initiated_by: 'web',
      created_by: null,
      error_message: null,
      compensation: 'none',
      needs_attention: false,
      definition_hash: hash,
      fingerprint: null,
      pivot_opened: false,
      trace_id: null,
      steps: [
        {
          name: 'a',
          state: 'not_started',
          service: 'shop',
          method: 'POST /a',
          compensate: 'POST /undo-a',
          pivot: false,
        },
      ],
    });
    assert.equal(typeof next_attempt_at, 'string');
    assert.match(created_at, /^\d{4}-\d\d-\d\dT[\d:.]+\+00:00$/);
    assert.match(updated_at, /\+00:00$/);
    const limitMs = Date.parse(deadline_at ?? '') - Date.parse(created_at);
    assert.ok(Math.abs(limitMs - 3_600_000) < 10_000, String(limitMs));
    assert.deepEqual(told.body.step_logs, []);
  });

  test('a workflow is all that it needs', async () => {
    const answer = await postSaga({ workflow_name: await at.register([step('a')]) });
    const { saga } = await at.told(String(answer.body['saga_id']));
    assert.deepEqual([saga.payload, saga.deadline_at], [null, null]);
  });

  test('of a workflow that is not there is 404', async () => {
    assertError(await postSaga({ workflow_name: 'nothing' }), 404, 'SYS_SAGA_NOT_FOUND');
  });

  test('a key begins one saga, however often and by however many it is used', async () => {
    const workflow_name = await at.register([step('a')]);
    const key = { 'idempotency-key': randomUUID() };
    const body = { workflow_name, payload: { a: 1, b: [2] }, correlation_id: 'c' };
    const answers = await Promise.all(Array.from({ length: 6 }, () => postSaga(body, key)));
    assert.deepEqual(sortedStatuses(answers), [200, 200, 200, 200, 200, 201]);
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    for (const { status, headers } of answers)
      assert.equal(headers.get('idempotent-replayed'), status === 200 ? 'true' : null);
    // The order of keys says nothing.
    const reordered = { ...body, payload: { b: [2], a: 1 } };
    assert.equal((await postSaga(reordered, key)).status, 200);
    for (const other of [
      { ...body, payload: { a: 2, b: [2] } },
      { ...body, correlation_id: 'd' },
      { workflow_name, correlation_id: 'c' },
    ])
      assertError(await postSaga(other, key), 422, 'SYS_SAGA_IDEMPOTENCY_MISMATCH');
    const elsewhere = { ...body, workflow_name: await at.register([step('a')]) };
    assert.equal((await postSaga(elsewhere, key)).status, 201);
    const list = await at.system.api.get<Page>(`${root}?workflow_name=${workflow_name}`);
    assert.equal(list.body.pagination['total_count'], 1);
  });

  test('where its trace was then is kept', async () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const answer = await postSaga({ workflow_name: await at.register([step('a')]) }, { traceparent });
    const [row] = await at.system.db.query<{ trace: string }>(sql`
      SELECT trace FROM saga.saga_states WHERE id = ${answer.body['saga_id']}`);
    assert.match(row?.trace ?? '', /^00-4bf92f3577b34da6a3ce929d0e0e4736-[\da-f]{16}-01$/);
  });
});

describe('looking at sagas', () => {
  const idsOf = ({ sagas }: Page): readonly unknown[] => sagas.map(({ saga_id }) => saga_id);

  test('a list goes from the newest to the oldest, by pages and by cursor alike', async () => {
    const name = await at.register([step('a')]);
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.unshift(await at.start(name, { correlation_id: `c${n % 2}` }));
    // Three of one moment: then the id decides.
    await at.system.db.query(sql`
      UPDATE saga.saga_states SET created_at = date_trunc('second', now()) + interval '0.123456 s'
      WHERE id = ANY(${ids.slice(1, 4)}::uuid[])`);
    const read = async (query: string): Promise<Page> => {
      const answer = await at.system.api.get<Page>(`${root}?workflow_name=${name}&${query}`);
      assert.equal(answer.status, 200, answer.text);
      return answer.body;
    };
    const all = await read('page_size=100');
    assert.deepEqual(new Set(idsOf(all)), new Set(ids));
    assert.deepEqual(all.pagination, { total_count: 5, page: 1, page_size: 100, has_next: false });

    const byPage = [];
    for (const page of [1, 2, 3, 4]) byPage.push(...idsOf(await read(`page_size=2&page=${page}`)));
    assert.deepEqual(byPage, idsOf(all));

    const byCursor = [];
    for (let cursor: unknown = ''; typeof cursor === 'string';) {
      const page = await read(`page_size=2&cursor=${cursor}`);
      byCursor.push(...idsOf(page));
      cursor = page.pagination['next_cursor'];
    }
    assert.deepEqual(byCursor, idsOf(all));
    assert.equal((await read('correlation_id=c1')).pagination['total_count'], 2);
  });

  test('filters say which, together', async () => {
    const name = await at.register([step('a')]);
    const [failed, stuck] = [await at.start(name), await at.start(name), await at.start(name)];
    await at.system.db.query(sql`UPDATE saga.saga_states SET status = 'FAILED' WHERE id = ${failed}`);
    await at.system.db.query(sql`
      UPDATE saga.saga_states
      SET status = 'RUNNING', needs_attention = true, stuck_step = 0, stuck_op = 'EXECUTE', stuck_reason = 'why'
      WHERE id = ${stuck}`);
    const read = async (query: string): Promise<readonly unknown[]> =>
      idsOf((await at.system.api.get<Page>(`${root}?workflow_name=${name}&${query}`)).body);
    assert.deepEqual(await read('status=FAILED'), [failed]);
    assert.deepEqual(await read('needs_attention=true'), [stuck]);
    assert.equal((await read('needs_attention=false')).length, 2);
    assert.deepEqual(await read('status=FAILED&needs_attention=true'), []);
    assert.deepEqual(new Set(await read('status=FAILED&status=RUNNING')), new Set([failed, stuck]));
    const waiting = await at.told(stuck);
    assert.deepEqual(waiting.saga.stuck, { step: 'a', action: 'EXECUTE', reason: 'why' });
    for (const query of [
      'status=DONE',
      'status=failed',
      'status=',
      'needs_attention=1',
      'state=FAILED',
      'page=0',
    ])
      assertError(await at.system.api.get(`${root}?${query}`), 400, 'SYS_SAGA_VALIDATION_ERROR');
  });

  test('a list leaves large payloads out, and says so', async () => {
    const name = await at.register([step('a')]);
    const id = await at.start(name, { payload: { text: 'x'.repeat(20_000) } });
    const list = await at.system.api.get<Page>(`${root}?workflow_name=${name}`);
    assert.deepEqual(
      [list.body.sagas[0]?.['payload'], list.body.sagas[0]?.['payload_omitted']],
      [null, true],
    );
    assert.equal(JSON.stringify((await at.told(id)).saga.payload).length, 20_011);
  });

  test('the log has one row per attempt, by step and then by start', async () => {
    const id = await at.startOf([step('a'), step('b')]);
    await at.system.db.query(sql`
      INSERT INTO saga.saga_step_logs
        (saga_id, step_index, step_name, action, attempt, status, answer, error_message, request_payload,
         response_payload, started_at, completed_at, actor, reason)
      VALUES
        (${id}, 1, 'b', 'EXECUTE', 1, NULL, NULL, NULL, '{"n":2}', NULL, now() + interval '2 s', NULL, NULL, NULL),
        (${id}, 0, 'a', 'COMPENSATE', 1, 'SKIPPED', NULL, NULL, NULL, NULL, now() + interval '3 s', now(), 'ann', 'x'),
        (${id}, 0, 'a', 'EXECUTE', 2, 'SUCCESS', 'done', NULL, '{"n":1}', '[1]', now() + interval '1 s', now(), NULL, NULL),
        (${id}, 0, 'a', 'EXECUTE', 1, 'TIMEOUT', 'unknown', 'late', '{"n":1}', NULL, now(), now(), NULL, NULL)`);
    const told = await at.told(id);
    assert.deepEqual(
      told.step_logs.map(({ step_index, action, attempt, status }) => [step_index, action, attempt, status]),
      [
        [0, 'EXECUTE', 1, 'TIMEOUT'],
        [0, 'EXECUTE', 2, 'SUCCESS'],
        [0, 'COMPENSATE', 1, 'SKIPPED'],
        [1, 'EXECUTE', 1, null],
      ],
    );
    const [first] = told.step_logs as unknown as readonly Fields[];
    const { id: rowId, started_at, completed_at, updated_at, ...row } = first ?? {};
    assert.deepEqual(row, {
      saga_id: id,
      step_index: 0,
      step_name: 'a',
      action: 'EXECUTE',
      status: 'TIMEOUT',
      request_payload: { n: 1 },
      response_payload: null,
      error_message: 'late',
      attempt: 1,
      answer: 'unknown',
      headers: {
        'saga-id': id,
        'saga-step': 'a',
        'saga-op': 'action',
        'saga-attempt': '1',
        'idempotency-key': `${id}:a:action`,
      },
      fingerprint: null,
    });
    for (const each of [rowId, started_at, completed_at, updated_at]) assert.equal(typeof each, 'string');
    assert.deepEqual([told.step_logs[2]?.actor, told.step_logs[2]?.reason], ['ann', 'x']);

    const before = await at.system.api.get(`${root}/${id}`);
    await at.system.db.query(sql`
      INSERT INTO saga.saga_states_archive
      SELECT (jsonb_populate_record(NULL::saga.saga_states_archive, to_jsonb(t) || jsonb_build_object('archived_at', now()))).*
      FROM saga.saga_states t WHERE t.id = ${id}`);
    await at.system.db.query(sql`
      INSERT INTO saga.saga_step_logs_archive SELECT l.* FROM saga.saga_step_logs l WHERE l.saga_id = ${id}`);
    await at.system.db.query(sql`DELETE FROM saga.saga_states WHERE id = ${id}`);
    assert.equal((await at.system.api.get(`${root}/${id}`)).text, before.text);
  });

  test('one that was never started is 404', async () => {
    assertError(await at.system.api.get(`${root}/${randomUUID()}`), 404, 'SYS_SAGA_NOT_FOUND');
  });
});
