import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { eventually } from '../../../tests/support/eventually.ts';
import {
  done,
  openSagaScene,
  refused,
  stepOf,
  unknownEnd,
  type SagaScene,
} from '../../../tests/support/saga-engine.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Answer } from '../domain/judge-answer.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';
import { reapSagas } from './reap-sagas.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());
beforeEach(() => void (at.calls.length = 0));

let workflows = 0;
function workflowOf(steps: Workflow['steps'], more: Partial<Workflow> = {}): Workflow {
  workflows += 1;
  return { name: `order-${workflows}`, deadlineMs: null, steps, ...more };
}

const threeSteps = (): Workflow => workflowOf([stepOf('reserve'), stepOf('charge'), stepOf('ship')]);

async function logOf(id: string): Promise<readonly string[]> {
  const rows = await at.db.query<{ line: string }>(sql`
    SELECT concat_ws(' ', action, step_name, attempt, COALESCE(status, 'open'), answer) AS line
    FROM saga.saga_step_logs WHERE saga_id = ${id} ORDER BY started_at, step_index, attempt`);
  return rows.map(({ line }) => line);
}

test('a saga goes through its steps, each with what the steps before have answered', async (t) => {
  const requests: unknown[] = [];
  const engine = at.newEngine((call) => {
    requests.push(call.request);
    return done({ id: `${call.stepName}-1` });
  });
  const workflow = workflowOf([
    stepOf('reserve', { input: { sku: '${input.sku}' } }),
    stepOf('charge', { input: { for: '${steps.reserve.id}' } }),
  ]);
  const id = await at.start(workflow);
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  const saga = await at.ends(id, 'COMPLETED');
  assert.deepEqual(requests, [{ sku: 'shoe' }, { for: 'reserve-1' }]);
  assert.deepEqual(
    [saga.current_step, saga.compensation, saga.step_outputs],
    [2, 'none', { reserve: { id: 'reserve-1' }, charge: { id: 'charge-1' } }],
  );
  assert.deepEqual(await logOf(id), ['EXECUTE reserve 1 SUCCESS done', 'EXECUTE charge 1 SUCCESS done']);
});

test('what was done is undone in reverse order after a refusal', async (t) => {
  const engine = at.newEngine(({ stepName, call }) =>
    stepName === 'ship' && call.op === 'EXECUTE' ? refused('no carrier') : undefined,
  );
  const id = await at.start(threeSteps());
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  const saga = await at.ends(id, 'FAILED');
  assert.deepEqual(at.calls, ['reserve', 'charge', 'ship', 'undo charge', 'undo reserve']);
  assert.equal(saga.compensation, 'done');
  assert.match(saga.error_message ?? '', /ship: no carrier/);
});

test('a step of which nobody knows the end is tried again, and at last undone with the others', async (t) => {
  const engine = at.newEngine(({ stepName, call }) =>
    stepName === 'charge' && call.op === 'EXECUTE' ? unknownEnd() : undefined,
  );
  const id = await at.start(threeSteps());
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  await at.ends(id, 'FAILED');
  assert.deepEqual(at.calls, ['reserve', 'charge', 'charge', 'charge', 'undo charge', 'undo reserve']);
});

test('a cancel that comes while a call is under way lets it end and undoes everything', async (t) => {
  const called = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const engine = at.newEngine(async ({ stepName, call }) => {
    if (stepName !== 'charge' || call.op !== 'EXECUTE') return done();
    called.resolve();
    await goOn.promise;
    return done();
  });
  const id = await at.start(threeSteps());
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  await called.promise;
  await at.db.query(sql`
    UPDATE saga.saga_states SET abort_requested = 'cancel', abort_actor = 'ops', abort_reason = 'no', abort_at = now()
    WHERE id = ${id}`);
  goOn.resolve();
  const saga = await at.ends(id, 'CANCELLED');
  assert.deepEqual(at.calls, ['reserve', 'charge', 'undo charge', 'undo reserve']);
  assert.match(saga.error_message ?? '', /cancelled by ops: no/);
});

test('a deadline that passes while a call is under way turns the saga round', async (t) => {
  const engine = at.newEngine(async ({ stepName, call }) => {
    if (stepName === 'charge' && call.op === 'EXECUTE')
      await at.db.query(sql`UPDATE saga.saga_states SET deadline_at = now() WHERE id = ${id}`);
    return done();
  });
  const workflow = { ...threeSteps(), deadlineMs: 3_600_000 };
  const id = await at.start(workflow);
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  const saga = await at.ends(id, 'FAILED');
  assert.deepEqual(at.calls, ['reserve', 'charge', 'undo charge', 'undo reserve']);
  assert.equal(saga.error_message, 'the deadline is over');
});

test('whoever loses its lease settles nothing, and the next one finds what may have been called', async (t) => {
  const called = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const paused = at.newEngine(async () => {
    called.resolve();
    await goOn.promise;
    return done();
  });
  const id = await at.start(workflowOf([stepOf('reserve')]));
  await paused.start();
  await called.promise;
  await at.db.query(sql`UPDATE saga.saga_states SET lease_until = now() WHERE id = ${id}`);
  assert.equal(await reapSagas(at.db), 1);
  void paused.stop(AbortSignal.timeout(100));
  const rescuer = at.newEngine();
  await rescuer.start();
  t.after(() => rescuer.stop(AbortSignal.timeout(500)));
  await at.ends(id, 'COMPLETED');
  goOn.resolve();
  assert.deepEqual(await logOf(id), ['EXECUTE reserve 1 TIMEOUT unknown', 'EXECUTE reserve 2 SUCCESS done']);
  await at.until(id, () => paused.stale() === 1 || paused.leasedCount() === 0);
});

test('a worker that is lost while it polls costs the attempt: nothing polls for ever', async (t) => {
  const polled = Promise.withResolvers<void>();
  let calls = 0;
  const paused = at.newEngine(async () => {
    calls += 1;
    if (calls === 1) return { class: 'working' };
    polled.resolve();
    return new Promise(() => {});
  });
  const id = await at.start(workflowOf([stepOf('reserve')]));
  await paused.start();
  await polled.promise;
  await at.db.query(sql`UPDATE saga.saga_states SET lease_until = now() WHERE id = ${id}`);
  assert.equal(await reapSagas(at.db), 1);
  void paused.stop(AbortSignal.timeout(100));
  const rescuer = at.newEngine();
  await rescuer.start();
  t.after(() => rescuer.stop(AbortSignal.timeout(500)));
  await at.ends(id, 'COMPLETED');
  assert.deepEqual(await logOf(id), ['EXECUTE reserve 1 TIMEOUT unknown', 'EXECUTE reserve 2 SUCCESS done']);
});

test('an undo that is refused waits for a person, and says where', async (t) => {
  const engine = at.newEngine(({ stepName, call }) => {
    if (stepName === 'ship') return refused();
    return call.op === 'COMPENSATE' ? refused('already shipped') : undefined;
  });
  const id = await at.start(threeSteps());
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  const saga = await at.until(id, ({ needs_attention }) => needs_attention);
  assert.deepEqual([saga.status, saga.compensation], ['COMPENSATING', 'stuck']);
  const told = await at.db.query<{ kind: string }>(sql`
    SELECT kind FROM platform.notify_events WHERE slice = 'saga' AND item_id = ${id}`);
  assert.deepEqual(told, [{ kind: 'compensation_stuck' }]);
});

test('hundreds of sagas go on at once in two engines, and each step is called once', async (t) => {
  const engines = [at.newEngine(), at.newEngine()];
  const workflow = threeSteps();
  const ids = await Promise.all(Array.from({ length: 200 }, () => at.start(workflow)));
  for (const engine of engines) await engine.start();
  t.after(() => Promise.all(engines.map((engine) => engine.stop(AbortSignal.timeout(500)))));
  for (const id of ids) await at.ends(id, 'COMPLETED');
  assert.equal(at.calls.length, 600);
  assert.equal(
    engines.reduce((sum, engine) => sum + engine.stale(), 0),
    0,
  );
});

test('a process that stops lets the running call end, stores its answer, and calls nothing more', async () => {
  const called = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const calls = { maxInFlight: 1, maxInFlightTo: () => 1, maxWaiting: 10 };
  const stopped = at.newEngine(
    async () => {
      called.resolve();
      await goOn.promise;
      return done();
    },
    { calls },
  );
  const [first, waiting] = [await at.start(threeSteps()), await at.start(threeSteps())];
  await stopped.start();
  await called.promise;
  await at.until(waiting, ({ lease_owner }) => lease_owner !== null);
  const stop = stopped.stop(AbortSignal.timeout(20_000));
  goOn.resolve();
  await stop;
  assert.deepEqual(at.calls, ['reserve']);
  assert.deepEqual(await logOf(first), ['EXECUTE reserve 1 SUCCESS done']);
  assert.deepEqual(await logOf(waiting), []);

  const next = at.newEngine();
  await next.start();
  for (const id of [first, waiting]) await at.ends(id, 'COMPLETED');
  await next.stop(AbortSignal.timeout(500));
  assert.equal(at.calls.length, 6);
});

test('sagas behind a service that hangs keep no other from going on, and come back ever more rarely', async (t) => {
  const hung = Promise.withResolvers<Answer>();
  const engine = at.newEngine(async ({ call }) => (call.service === 'hung' ? hung.promise : done()), {
    services: ['shop', 'hung'],
    calls: { maxInFlight: 20, maxInFlightTo: () => 10, maxWaiting: 20 },
  });
  const hanging = workflowOf([stepOf('reserve', { service: 'hung' })]);
  for (let begun = 0; begun < 300; begun += 1) await at.start(hanging);
  await engine.start();
  t.after(async () => {
    hung.resolve(refused());
    await engine.stop(AbortSignal.timeout(5000));
  });
  await at.until(await at.start(threeSteps()), ({ status }) => status === 'COMPLETED');
  // Ten calls, and a few sagas that wait for a permit; the others back off, longer than at first.
  await eventually(() => assert.ok(engine.leasedCount() <= 15, `${engine.leasedCount()} are leased`), {
    withinMs: 40_000,
  });
  await eventually(async () => assert.ok((await leastPauseMs()) > 2000), { withinMs: 40_000 });
  for (let begun = 0; begun < 10; begun += 1) await at.ends(await at.start(threeSteps()), 'COMPLETED');
});

/** How long those that were sent away stay away, at least. */
async function leastPauseMs(): Promise<number> {
  const [row] = await at.db.query<{ least: number | null }>(sql`
    SELECT min(date_part('epoch', wake_at - updated_at)) * 1000 AS least
    FROM saga.saga_states WHERE wake_at > now()`);
  return row?.least ?? 0;
}
