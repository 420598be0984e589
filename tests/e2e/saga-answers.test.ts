import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { startParticipant, type Participant } from '../support/saga-participant.ts';
import { startSagaSystem, step, type SagaSystem } from '../support/saga-system.ts';

/** What an answer means after what came before it. The shop is idempotent, the till is not. */
let at: SagaSystem;
let till: Participant;
before(async () => {
  till = await startParticipant();
  const services = { till: { type: 'http', base_url: till.url, idempotent: false } };
  at = await startSagaSystem({ services });
});
after(async () => {
  await at.drop();
  await till.stop();
});
beforeEach(() => {
  at.shop.setScript(() => undefined);
  till.setScript(() => undefined);
});

test('a 202, a poll whose answer is lost after the effect, and a 409: the step is undone', async () => {
  let arrivals = 0;
  at.shop.setScript(({ what }) => {
    if (what !== 'reserve') return undefined;
    arrivals += 1;
    if (arrivals === 1) return { status: 202, headers: { 'retry-after': '0' } };
    return arrivals === 2 ? 'hang' : { status: 409, body: { error: 'already reserved' } };
  });
  const id = await at.startOf([step('reserve', { timeout_secs: 1.5, retry: { max_attempts: 3 } })]);
  const told = await at.becomes(id, 'FAILED');
  assert.deepEqual(at.shop.callsOf(id), ['reserve', 'reserve', 'reserve', 'undo reserve']);
  assert.deepEqual(at.shop.effectsOf(id), ['undo reserve']);
  assert.match(told.saga.error_message ?? '', /^reserve: HTTP 409.*, after a 202$/);
  assert.equal(told.saga.compensation, 'done');
});

test('the 202 of a service that is not idempotent is its answer: nothing is posted again', async () => {
  till.setScript(({ what }) => (what === 'pay' ? { status: 202, body: { id: 'p-7' } } : undefined));
  const id = await at.startOf([
    step('pay', { service: 'till' }),
    step('ship', { method: 'POST /ship/${steps.pay.id}' }),
  ]);
  const told = await at.becomes(id, 'COMPLETED');
  assert.deepEqual(till.callsOf(id), ['pay']);
  assert.equal(at.shop.calls.find(({ sagaId }) => sagaId === id)?.path, '/ship/p-7');
  assert.deepEqual(told.step_logs[0]?.response_payload, { id: 'p-7' });
});

test('a service that is not idempotent is polled where the step names a poll, with what came with the 202', async () => {
  let polls = 0;
  till.setScript(({ verb }) => {
    if (verb === 'POST') return { status: 202, body: { id: 'p 8' }, headers: { 'retry-after': '0' } };
    polls += 1;
    return polls === 1 ? { status: 202 } : { status: 200, body: { id: 'p 8', state: 'paid' } };
  });
  const id = await at.startOf([
    step('pay', { service: 'till', compensate: undefined, poll: 'GET /payments/${own.id}' }),
  ]);
  const told = await at.becomes(id, 'COMPLETED');
  const calls = till.calls.filter(({ sagaId }) => sagaId === id);
  assert.deepEqual(
    calls.map(({ verb, path, body }) => [verb, path, body]),
    [
      ['POST', '/pay', { sku: 'shoe' }],
      ['GET', '/payments/p%208', undefined],
      ['GET', '/payments/p%208', undefined],
    ],
  );
  assert.deepEqual(told.step_logs[0]?.response_payload, { id: 'p 8', state: 'paid' });
});
