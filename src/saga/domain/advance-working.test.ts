import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  behindPivot,
  done,
  Driven,
  openOf,
  refused,
  silence,
  step,
  two,
  workflowOf,
} from '../../../tests/support/saga-model/driven-saga.ts';
import type { Answer } from './judge-answer.ts';

const working: Answer = { class: 'working', output: { id: 'o-7' } };
const fragile = () => ({ isIdempotent: false });

test('a refusal after a 202 leaves the step in doubt: it is undone, and not called again', () => {
  const saga = new Driven(two);
  saga.claim();
  saga.answer(working);
  saga.claim();
  saga.answer(silence);
  saga.claim();
  assert.equal(saga.answer(refused), 'reserve.Undo #1');
  assert.equal(saga.answer(done), 'FAILED');
  const [row] = saga.state.log;
  assert.deepEqual([row?.status, row?.answer, row?.isLast], ['FAILED', 'unknown', true]);
  assert.match(saga.state.errorMessage ?? '', /^reserve: HTTP 409/);
});

test('a pivot that is refused after a 202 needs attention, and so does an undo', () => {
  const saga = new Driven(behindPivot);
  saga.claim();
  saga.answer(done);
  saga.answer(working);
  saga.claim();
  assert.equal(saga.answer(refused), 'ask: EXECUTE 1');
  const undo = new Driven(two);
  undo.claim();
  undo.answer(done);
  undo.answer(refused);
  undo.answer(working);
  undo.claim();
  assert.equal(undo.answer(refused), 'ask: COMPENSATE 0');
});

test('the 202 of a service that is not idempotent counts as done, and its body is the answer', () => {
  const saga = new Driven(two, fragile);
  saga.claim();
  assert.equal(saga.answer(working), 'pay.Do #1');
  assert.deepEqual(saga.state.outputs, { reserve: { id: 'o-7' } });
  assert.equal(saga.answer(refused), 'reserve.Undo #1');
  assert.equal(saga.answer(working), 'FAILED', 'the 202 of its undo too');
});

test('a 202 of a service that is not idempotent with a body that cannot be read leaves the step in doubt', () => {
  const saga = new Driven(two, fragile);
  saga.claim();
  assert.equal(saga.answer({ class: 'working' }), 'reserve.Undo #1');
});

test('a step that names a poll is polled with it, whatever its service is, and keeps what the 202 said', () => {
  for (const isIdempotent of [true, false]) {
    const saga = new Driven(workflowOf(step('order', { poll: 'GET /orders/${own.id}' })), () => ({
      isIdempotent,
    }));
    saga.claim();
    assert.equal(saga.answer(working), 'wait 1000');
    assert.deepEqual(saga.state.log[0]?.output, { id: 'o-7' });
    assert.equal(saga.claim(), 'poll GET /orders/${own.id} #1');
    saga.answer({ class: 'working', output: { id: 'o-7', state: 'busy' } });
    assert.equal(saga.claim(), 'poll GET /orders/${own.id} #1');
    assert.deepEqual(saga.state.log[0]?.output, { id: 'o-7' }, 'the first answer names what is polled');
    assert.equal(saga.answer(done), 'COMPLETED');
    assert.deepEqual(saga.state.outputs, { order: { id: 7 } });
  }
});

test('polls that fail put a step in doubt, and a service that is not idempotent is not called again', () => {
  const saga = new Driven(workflowOf(step('order', { poll: 'GET /orders/${own.id}' })), fragile);
  saga.claim();
  saga.answer(working);
  for (let poll = 1; poll < 3; poll += 1) {
    saga.claim();
    assert.match(saga.answer(silence), /^wait/);
  }
  saga.claim();
  assert.equal(saga.answer(silence), 'order.Undo #1');
});

test('polls that are probes of a service that is down are not counted as failed', () => {
  const saga = new Driven(two);
  saga.claim();
  saga.answer(working);
  for (let probes = 0; probes < 5; probes += 1) {
    assert.match(saga.claim(), /^poll reserve.Do #1/);
    const probe = { kind: 'answered', ...openOf(saga.state), answer: silence, isProbe: true } as const;
    assert.equal(saga.on(probe).next.do, 'wait');
    assert.equal(saga.state.polling?.failedPolls, 0);
  }
  saga.claim();
  saga.answer(silence);
  assert.equal(saga.state.polling?.failedPolls, 1);
});
