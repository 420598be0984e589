import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, sortedStatuses, type Answer } from '../support/api-client.ts';
import type { ParticipantScript, Reply } from '../support/saga-participant.ts';
import { root, startSagaSystem, step, stepWithoutUndo, type SagaSystem } from '../support/saga-system.ts';

/** What people do to sagas, over the API of the whole system. */
let at: SagaSystem;
before(async () => void (at = await startSagaSystem()));
after(() => at.drop());
beforeEach(() => at.shop.setScript(() => undefined));

type Body = Readonly<Record<string, unknown>>;
const ann = { 'x-actor': 'ann' };
const ask = (id: string, what: 'cancel' | 'compensate', body: Body = {}): Promise<Answer<Body>> =>
  at.system.api.post(`${root}/${id}/${what}`, body, ann);
const act = (id: string, name: string, what: string, body: Body = {}): Promise<Answer<Body>> =>
  at.system.api.post(`${root}/${id}/steps/${name}/${what}`, { reason: 'looked', ...body }, ann);

/** Answers these and nothing else is asked of them. */
const answering =
  (replies: Readonly<Record<string, Reply>>): ParticipantScript =>
  ({ what }) =>
    replies[what];
const refusal: Reply = { status: 422, body: { error: 'no' } };
const trouble: Reply = { status: 500, body: { error: 'broken' } };

/** A saga whose step of this name is being called, until it is let go. */
async function heldAt(name: string, steps: readonly Body[]) {
  const called = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  at.shop.setScript(async ({ what }) => {
    if (what !== name) return undefined;
    called.resolve();
    await goOn.promise;
    return undefined;
  });
  const id = await at.startOf(steps);
  await called.promise;
  return { id, goOn: goOn.resolve };
}

describe('cancel and compensate', () => {
  const steps = [step('reserve'), step('charge'), step('ship')];

  for (const [what, status, said] of [
    ['cancel', 'CANCELLED', 'cancelled by ann: changed their mind'],
    ['compensate', 'FAILED', 'compensation was asked for by ann: changed their mind'],
  ] as const)
    test(`${what} is answered while a call is under way; that one ends, no other begins, all is undone`, async () => {
      const { id, goOn } = await heldAt('charge', steps);
      const answer = await ask(id, what, { reason: 'changed their mind' });
      assert.equal(answer.status, 200, answer.text);
      const { message, ...rest } = answer.body;
      assert.deepEqual(rest, { success: true, saga_id: id, status: 'RUNNING' });
      assert.ok(typeof message === 'string' && message !== '');
      goOn();
      const told = await at.becomes(id, status);
      assert.equal(told.saga.error_message, said);
      assert.deepEqual(at.shop.effectsOf(id), ['reserve', 'charge', 'undo charge', 'undo reserve']);
      assert.deepEqual(at.shop.callsOf(id), ['reserve', 'charge', 'undo charge', 'undo reserve']);
    });

  test('a saga that waits to try again is woken', async () => {
    at.shop.setScript(({ what }) =>
      what === 'charge' ? { status: 503, headers: { 'retry-after': '3600' } } : undefined,
    );
    const id = await at.startOf(steps);
    await at.until(id, ({ current_step }) => current_step === 1);
    assert.equal((await ask(id, 'cancel')).status, 200);
    const told = await at.becomes(id, 'CANCELLED');
    assert.equal(told.saga.error_message, 'cancelled by ann: no reason given');
    assert.deepEqual(at.shop.callsOf(id), ['reserve', 'charge', 'undo charge', 'undo reserve']);
  });

  test('the first wish wins, and a second one is answered like it', async () => {
    const { id, goOn } = await heldAt('charge', steps);
    assert.equal((await ask(id, 'cancel')).status, 200);
    const second = await ask(id, 'compensate');
    assert.deepEqual([second.status, second.body['status']], [200, 'RUNNING']);
    goOn();
    await at.becomes(id, 'CANCELLED');
  });

  test('while it is undone both are answered and change nothing', async () => {
    const called = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    at.shop.setScript(async ({ what }) => {
      if (what === 'charge') return refusal;
      if (what !== 'undo reserve') return undefined;
      called.resolve();
      await goOn.promise;
      return undefined;
    });
    const id = await at.startOf([step('reserve'), step('charge')]);
    await called.promise;
    for (const what of ['cancel', 'compensate'] as const) {
      const answer = await ask(id, what);
      assert.deepEqual([answer.status, answer.body['status']], [200, 'COMPENSATING']);
    }
    goOn.resolve();
    await at.becomes(id, 'FAILED');
  });

  test('what has ended, archived or not, and what is beyond its pivot is refused with 409', async () => {
    const ended = await at.startOf([step('reserve')]);
    await at.becomes(ended, 'COMPLETED');
    const { error } = (await ask(ended, 'cancel')).body as { error: { message: string } };
    assert.match(error.message, /status=COMPLETED/);
    await archive(ended);
    assertError(await ask(ended, 'compensate'), 409, 'SYS_SAGA_CONFLICT');

    const { id, goOn } = await heldAt('ship', [step('reserve'), stepWithoutUndo('ship', { pivot: true })]);
    for (const what of ['cancel', 'compensate'] as const)
      assertError(await ask(id, what), 409, 'SYS_SAGA_CONFLICT');
    goOn();
    await at.becomes(id, 'COMPLETED');
    assert.deepEqual(at.shop.effectsOf(id), ['reserve', 'ship']);
  });

  test('a saga that waits for a person is woken, and the step in doubt is left to one', async () => {
    at.shop.setScript(answering({ charge: trouble }));
    const id = await at.startOf([step('reserve'), stepWithoutUndo('charge')]);
    const stuck = await at.waitsForPerson(id);
    assert.deepEqual([stuck.saga.status, stuck.saga.stuck?.step], ['RUNNING', 'charge']);
    assert.equal((await ask(id, 'cancel')).status, 200);
    const told = await at.until(
      id,
      ({ status, needs_attention }) => status === 'COMPENSATING' && needs_attention,
    );
    assert.deepEqual([told.saga.stuck?.step, told.saga.stuck?.action], ['charge', 'COMPENSATE']);
    await at.age(id);
    assert.equal((await act(id, 'charge', 'resolve')).status, 200);
    assert.equal((await at.becomes(id, 'CANCELLED')).saga.compensation, 'resolved');
  });

  test('what nobody has begun yet is cancelled without a call', async () => {
    const first = await startSagaSystem({ env: { ROLES: 'api' } });
    const id = await first.startOf(steps);
    const answer = await first.system.api.post<Body>(`${root}/${id}/cancel`);
    assert.deepEqual([answer.status, answer.body['status']], [200, 'STARTED']);
    const second = await startSagaSystem({ database: first.system.database });
    const told = await second.becomes(id, 'CANCELLED');
    assert.deepEqual([told.step_logs, told.saga.compensation], [[], 'none']);
    await second.drop();
    await first.drop();
  });
});

async function archive(id: string): Promise<void> {
  await at.system.db.query(sql`
    INSERT INTO saga.saga_states_archive
    SELECT (jsonb_populate_record(NULL::saga.saga_states_archive, to_jsonb(t) || jsonb_build_object('archived_at', now()))).*
    FROM saga.saga_states t WHERE t.id = ${id}`);
  await at.system.db.query(sql`
    INSERT INTO saga.saga_step_logs_archive SELECT l.* FROM saga.saga_step_logs l WHERE l.saga_id = ${id}`);
  await at.system.db.query(sql`DELETE FROM saga.saga_states WHERE id = ${id}`);
}

describe('a step at which a saga is stuck', () => {
  /** Its undo of `reserve` is refused. */
  async function stuckUndo(): Promise<string> {
    at.shop.setScript(answering({ charge: refusal, 'undo reserve': refusal }));
    const id = await at.startOf([step('reserve'), step('charge')]);
    const told = await at.waitsForPerson(id);
    assert.deepEqual([told.saga.status, told.saga.stuck?.step], ['COMPENSATING', 'reserve']);
    return id;
  }

  /** It is stuck in `mail`, behind its pivot. */
  async function stuckForward(more: readonly Body[] = []): Promise<string> {
    at.shop.setScript(answering({ mail: refusal }));
    const id = await at.startOf([
      step('reserve'),
      stepWithoutUndo('ship', { pivot: true }),
      stepWithoutUndo('mail'),
      ...more,
    ]);
    await at.waitsForPerson(id);
    return id;
  }

  test('is tried again, with attempts that go on and who let it', async () => {
    const id = await stuckUndo();
    at.shop.setScript(() => undefined);
    const answer = await act(id, 'reserve', 'retry', { reason: 'it was down' });
    assert.equal(answer.status, 200, answer.text);
    const { message: _, ...rest } = answer.body;
    assert.deepEqual(rest, { success: true, saga_id: id, step: 'reserve', status: 'COMPENSATING' });
    const { saga, step_logs } = await at.becomes(id, 'FAILED');
    assert.equal(saga.compensation, 'done');
    assert.deepEqual(
      step_logs
        .filter(({ action }) => action === 'COMPENSATE')
        .map(({ attempt, status, actor, reason }) => [attempt, status, actor, reason]),
      [
        [1, 'FAILED', 'ann', 'it was down'],
        [2, 'SUCCESS', undefined, undefined],
      ],
    );
  });

  test('is not closed by hand while a call may still arrive, and then it is', async () => {
    const id = await stuckUndo();
    for (const what of ['skip', 'resolve']) {
      const early = await act(id, 'reserve', what);
      assertError(early, 409, 'SYS_SAGA_CONFLICT');
      const seconds = Number(early.headers.get('retry-after'));
      assert.ok(seconds > 250 && seconds <= 311, String(seconds));
    }
    await at.age(id);
    assert.equal((await act(id, 'reserve', 'resolve')).body['status'], 'FAILED');
    const { saga, step_logs } = await at.told(id);
    assert.deepEqual([saga.status, saga.compensation, saga.needs_attention], ['FAILED', 'resolved', false]);
    assert.deepEqual(
      step_logs
        .filter(({ actor }) => actor === 'ann')
        .map(({ action, status, attempt }) => [action, status, attempt]),
      [['COMPENSATE', 'SUCCESS', 2]],
    );
  });

  test('is skipped, unless a later step needs its answer', async () => {
    const needed = await stuckForward([stepWithoutUndo('file', { input: { mail: '${steps.mail.id}' } })]);
    await at.age(needed);
    assertError(await act(needed, 'mail', 'skip'), 422, 'SYS_SAGA_UNPROCESSABLE');
    const before = await at.told(needed);
    for (const output of [undefined, { other: 1 }])
      assertError(
        await act(needed, 'mail', 'resolve', { outcome: 'done', output }),
        422,
        'SYS_SAGA_UNPROCESSABLE',
      );
    assert.deepEqual(await at.told(needed), before);
    const done = await act(needed, 'mail', 'resolve', { outcome: 'done', output: { id: 'm-9' } });
    assert.equal(done.status, 200, done.text);
    const told = await at.becomes(needed, 'COMPLETED');
    assert.deepEqual(told.step_logs.at(-1)?.request_payload, { mail: 'm-9' });

    const free = await stuckForward([stepWithoutUndo('file')]);
    await at.age(free);
    assert.equal((await act(free, 'mail', 'skip')).status, 200);
    const skipped = await at.becomes(free, 'COMPLETED');
    assert.deepEqual(
      skipped.step_logs.filter(({ step_name }) => step_name === 'mail').map(({ status }) => status),
      ['FAILED', 'SKIPPED'],
    );
  });

  test('that is in doubt is resolved as not done, and what came before is undone', async () => {
    at.shop.setScript(answering({ charge: trouble }));
    const id = await at.startOf([step('reserve'), stepWithoutUndo('charge')]);
    await at.waitsForPerson(id);
    await at.age(id);
    assertError(await act(id, 'charge', 'resolve'), 422, 'SYS_SAGA_UNPROCESSABLE');
    assert.equal((await act(id, 'charge', 'resolve', { outcome: 'not_done' })).status, 200);
    await at.becomes(id, 'FAILED');
    assert.deepEqual(at.shop.effectsOf(id), ['reserve', 'undo reserve']);
  });

  test('behind the pivot cannot be resolved as not done, nor can an undo', async () => {
    const forward = await stuckForward();
    await at.age(forward);
    assertError(
      await act(forward, 'mail', 'resolve', { outcome: 'not_done' }),
      422,
      'SYS_SAGA_UNPROCESSABLE',
    );
    const undo = await stuckUndo();
    await at.age(undo);
    assertError(
      await act(undo, 'reserve', 'resolve', { outcome: 'not_done' }),
      422,
      'SYS_SAGA_UNPROCESSABLE',
    );
    assert.equal((await at.told(undo)).saga.needs_attention, true);
  });

  test('is acted upon by one of many who try at once', async () => {
    const id = await stuckUndo();
    await at.age(id);
    const answers = await Promise.all(Array.from({ length: 6 }, () => act(id, 'reserve', 'resolve')));
    assert.deepEqual(sortedStatuses(answers), [200, 409, 409, 409, 409, 409]);
    const { step_logs } = await at.told(id);
    assert.equal(step_logs.filter(({ actor }) => actor !== undefined).length, 1);
  });

  test('is undone instead, where the deadline has come and gone meanwhile', async () => {
    at.shop.setScript(answering({ charge: trouble }));
    const id = await at.startOf([step('reserve'), stepWithoutUndo('charge')], { deadline: '1h' });
    await at.waitsForPerson(id);
    await at.system.db.query(sql`
      UPDATE saga.saga_states SET deadline_at = now() - interval '1 second' WHERE id = ${id}`);
    assert.equal((await act(id, 'charge', 'retry')).status, 200);
    const { saga } = await at.until(id, ({ status }) => status === 'COMPENSATING');
    assert.equal(saga.error_message, 'the deadline is over');
    assert.deepEqual(at.shop.callsOf(id), ['reserve', 'charge', 'charge']);
  });

  test('another step than that is 409, one that the workflow has not is 404, and so is a saga that is not', async () => {
    const id = await stuckUndo();
    assertError(await act(id, 'charge', 'retry'), 409, 'SYS_SAGA_CONFLICT');
    assertError(await act(id, 'nothing', 'retry'), 404, 'SYS_SAGA_NOT_FOUND');
    assertError(await act(randomUUID(), 'reserve', 'retry'), 404, 'SYS_SAGA_NOT_FOUND');
    assertError(await ask(randomUUID(), 'cancel'), 404, 'SYS_SAGA_NOT_FOUND');
    const ended = await at.startOf([step('done')]);
    await at.becomes(ended, 'COMPLETED');
    assertError(await act(ended, 'done', 'retry'), 409, 'SYS_SAGA_CONFLICT');
    await archive(ended);
    assertError(await act(ended, 'done', 'skip'), 409, 'SYS_SAGA_CONFLICT');
  });

  test('a reason is required', async () => {
    const id = await stuckUndo();
    for (const body of [{}, { reason: '' }, { reason: ' ' }, { reason: null }])
      for (const what of ['retry', 'skip', 'resolve'])
        assertError(
          await at.system.api.post(`${root}/${id}/steps/reserve/${what}`, body),
          400,
          'SYS_SAGA_VALIDATION_ERROR',
        );
  });
});
