import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done, Driven, refused, silence, two } from '../../../tests/support/saga-model/driven-saga.ts';
import { judgeGrpcAnswer, judgeHttpAnswer, type Answer } from './judge-answer.ts';

const now = new Date(0);
const http = (status: number): Answer =>
  judgeHttpAnswer({ status, headers: {}, isBodyCut: false, body: Buffer.from('{}') }, now);
const notFounds = {
  'HTTP 404': http(404),
  'HTTP 410': http(410),
  NOT_FOUND: judgeGrpcAnswer({ code: 5, details: '', trailers: {}, message: undefined }, now),
};

/** When the first attempt of an action can no longer begin, nor be under way: its timeout twice, and five minutes. */
const quietMs = 30_000 + 300_000 + 30_000;

for (const [name, notFound] of Object.entries(notFounds)) {
  test(`${name} of an undo counts as done where the action is in doubt, once the action can no longer arrive`, () => {
    const saga = new Driven(two, () => ({ isIdempotent: true }));
    saga.claim();
    saga.answer(silence);
    saga.claim();
    saga.answer(silence);
    saga.claim();
    assert.equal(saga.answer(silence), 'reserve.Undo #1');
    const lastAction = saga.state.log.findLast(({ op }) => op === 'EXECUTE')?.startedAt ?? 0;
    let said = saga.answer(notFound);
    while (said.startsWith('wait')) {
      assert.ok(saga.now <= lastAction + quietMs, 'it is asked for longer than the action can arrive');
      assert.equal(saga.state.log.at(-1)?.answer, 'unknown');
      saga.claim();
      said = saga.answer(notFound);
    }
    assert.equal(said, 'FAILED');
    assert.ok(saga.now > lastAction + quietMs, 'it counts before the action can no longer arrive');
    assert.match(saga.state.log.at(-1)?.error ?? '', /nothing is left to undo$/);
  });

  test(`${name} of an undo counts as done where an earlier call of it may have undone it`, () => {
    const saga = new Driven(two);
    saga.claim();
    saga.answer(done);
    assert.equal(saga.answer(refused), 'reserve.Undo #1');
    saga.answer(silence);
    saga.now = quietMs + 1;
    assert.equal(saga.claim(), 'reserve.Undo #2');
    assert.equal(saga.answer(notFound), 'FAILED');
    assert.equal(saga.state.compensation, 'done');
  });

  test(`${name} of an undo needs attention where the action was done and nothing can have undone it`, () => {
    const saga = new Driven(two);
    saga.claim();
    saga.answer(done);
    saga.answer(refused);
    saga.now = quietMs + 1;
    assert.equal(saga.answer(notFound), 'ask: COMPENSATE 0');
  });

  test(`${name} of an action is a defect, as before`, () => {
    const saga = new Driven(two);
    saga.claim();
    assert.equal(saga.answer(notFound), 'FAILED');
  });
}

test('404 of an undo that was answered 202 counts as done, once the action can no longer arrive', () => {
  const saga = new Driven(two);
  saga.claim();
  saga.answer(done);
  saga.answer(refused);
  saga.answer({ class: 'working' });
  saga.now = quietMs + 1;
  assert.equal(saga.claim(), 'poll reserve.Undo #1');
  assert.equal(saga.answer(http(404)), 'FAILED');
});
