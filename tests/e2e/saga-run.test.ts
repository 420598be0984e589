import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import {
  startSagaSystem,
  step,
  stepWithoutUndo,
  type SagaSystem,
  type ToldSaga,
} from '../support/saga-system.ts';

/** Sagas of the whole system, with a participant over real HTTP. */
let at: SagaSystem;
before(async () => void (at = await startSagaSystem()));
after(() => at.drop());
beforeEach(() => at.shop.setScript(() => undefined));

const linesOf = ({ step_logs }: ToldSaga): readonly string[] =>
  step_logs.map(
    ({ action, step_name, attempt, status }) => `${action} ${step_name} ${attempt} ${status ?? 'open'}`,
  );

test('a saga goes through its steps, and each is given what the steps before have answered', async () => {
  at.shop.setScript(({ what }) => (what === 'reserve' ? { status: 200, body: { id: 'r-7' } } : undefined));
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const workflow = await at.register([
    step('reserve', { input: { sku: '${input.sku}' } }),
    step('charge', { method: 'PUT /charges/${steps.reserve.id}', input: { for: '${steps.reserve.id}' } }),
    stepWithoutUndo('ship', { pivot: true }),
  ]);
  const started = await at.system.api.post<{ saga_id: string }>(
    '/api/v1/sagas',
    { workflow_name: workflow, payload: { sku: 'shoe' } },
    { traceparent },
  );
  const id = started.body.saga_id;
  const told = await at.becomes(id, 'COMPLETED');
  assert.deepEqual(linesOf(told), [
    'EXECUTE reserve 1 SUCCESS',
    'EXECUTE charge 1 SUCCESS',
    'EXECUTE ship 1 SUCCESS',
  ]);
  assert.deepEqual([told.saga.current_step, told.saga.compensation], [3, 'none']);
  const calls = at.shop.calls.filter(({ sagaId }) => sagaId === id);
  assert.deepEqual(
    calls.map(({ verb, path, body }) => [verb, path, body]),
    [
      ['POST', '/reserve', { sku: 'shoe' }],
      ['PUT', '/charges/r-7', { for: 'r-7' }],
      ['POST', '/ship', { sku: 'shoe' }],
    ],
  );
  assert.deepEqual(told.step_logs[1]?.request_payload, { for: 'r-7' });
  assert.deepEqual(told.step_logs[0]?.response_payload, { id: 'r-7' });
  for (const { headers } of calls)
    assert.match(String(headers['traceparent']), /4bf92f3577b34da6a3ce929d0e0e4736/);
});

test('after a refusal everything done is undone in reverse order', async () => {
  at.shop.setScript(({ what }) =>
    what === 'ship' ? { status: 422, body: { error: 'no carrier' } } : undefined,
  );
  const id = await at.startOf([step('reserve'), step('charge'), step('ship')]);
  const told = await at.becomes(id, 'FAILED');
  assert.deepEqual(at.shop.effectsOf(id), ['reserve', 'charge', 'undo charge', 'undo reserve']);
  assert.equal(told.saga.compensation, 'done');
  assert.match(told.saga.error_message ?? '', /^ship: /);
  assert.deepEqual(linesOf(told), [
    'EXECUTE reserve 1 SUCCESS',
    'COMPENSATE reserve 1 SUCCESS',
    'EXECUTE charge 1 SUCCESS',
    'COMPENSATE charge 1 SUCCESS',
    'EXECUTE ship 1 FAILED',
  ]);
});

test('a saga keeps the definition that it began with', async () => {
  const reached = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  at.shop.setScript(async ({ what }) => {
    if (what !== 'first') return undefined;
    reached.resolve();
    await goOn.promise;
    return undefined;
  });
  const name = await at.register([step('first'), step('second')]);
  const id = await at.start(name);
  await reached.promise;
  await at.register([step('first'), step('another')], { name });
  goOn.resolve();
  await at.becomes(id, 'COMPLETED');
  assert.deepEqual(at.shop.callsOf(id), ['first', 'second']);
  const next = await at.start(name);
  await at.becomes(next, 'COMPLETED');
  assert.deepEqual(at.shop.callsOf(next), ['first', 'another']);
});

test('a deadline that is over turns the saga round, and it fails', async () => {
  at.shop.setScript(({ what }) =>
    what === 'charge' ? { status: 503, headers: { 'retry-after': '30' } } : undefined,
  );
  const id = await at.startOf([step('reserve'), step('charge')], { deadline: '2s' });
  const told = await at.becomes(id, 'FAILED');
  assert.equal(told.saga.error_message, 'the deadline is over');
  assert.deepEqual(at.shop.effectsOf(id), ['reserve', 'undo charge', 'undo reserve']);
});
