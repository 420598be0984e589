import assert from 'node:assert/strict';
import { after, before, beforeEach, test, type TestContext } from 'node:test';
import { eventually } from '../../../tests/support/eventually.ts';
import { done, openSagaScene, stepOf, type SagaScene } from '../../../tests/support/saga-engine.ts';
import { sleep } from '../../kernel/clock.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Step, Workflow } from '../domain/workflow/workflow.ts';
import { reapSagas } from './reap-sagas.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());
beforeEach(() => void (at.calls.length = 0));

const workflowOf = (name: string, more: Partial<Step> = {}): Workflow => ({
  name,
  deadlineMs: null,
  steps: [stepOf('reserve', more), stepOf('charge')],
});

async function startEngine(t: TestContext, ...how: Parameters<SagaScene['newEngine']>) {
  const engine = at.newEngine(...how);
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  return engine;
}

/** Somebody has claimed it, and was lost before anything was decided. */
async function loseWorker(id: string): Promise<void> {
  await at.db.query(sql`
    UPDATE saga.saga_states SET wake_at = NULL, lease_owner = 'lost', lease_until = now() WHERE id = ${id}`);
  assert.equal(await reapSagas(at.db), 1);
}

type Marks = Readonly<{ failed_rounds: number; runs_alone: boolean }>;

async function marksOf(id: string): Promise<Marks | undefined> {
  const [row] = await at.db.query<Marks>(sql`
    SELECT failed_rounds, runs_alone FROM saga.saga_states WHERE id = ${id}`);
  return row;
}

/** Its pauses grow; the test does not wait for them. */
async function hurry(id: string): Promise<void> {
  await at.db.query(sql`UPDATE saga.saga_states SET wake_at = now() WHERE id = ${id} AND wake_at > now()`);
}

async function untilPersonIsAsked(id: string): Promise<string | null> {
  await at.until(id, ({ needs_attention }) => {
    void hurry(id);
    return needs_attention;
  });
  const [row] = await at.db.query<{ stuck_reason: string | null }>(sql`
    SELECT stuck_reason FROM saga.saga_states WHERE id = ${id}`);
  return row?.stuck_reason ?? null;
}

test('a saga that was lost with two workers in a row runs alone, and no longer than until it is answered', async (t) => {
  const killer = await at.start(workflowOf('killer'));
  await loseWorker(killer);
  assert.deepEqual(await marksOf(killer), { failed_rounds: 1, runs_alone: false });
  await loseWorker(killer);
  assert.deepEqual(await marksOf(killer), { failed_rounds: 2, runs_alone: true });

  await at.db.query(
    sql`UPDATE saga.saga_states SET wake_at = now() + interval '1 hour' WHERE id = ${killer}`,
  );

  const neighbours = await Promise.all(Array.from({ length: 20 }, () => at.start(workflowOf('neighbour'))));
  const isKillerCalled = Promise.withResolvers<void>();
  const underWay = new Set<string>();
  const besideIt: string[] = [];
  await startEngine(t, async ({ saga, stepName }) => {
    const call = saga.id === killer ? `killer's ${stepName}` : saga.id;
    if (call === "killer's reserve") {
      besideIt.push(...underWay);
      isKillerCalled.resolve();
    }
    if (underWay.has("killer's reserve")) besideIt.push(call);
    underWay.add(call);
    // Time enough for it to be called too early.
    if (call !== "killer's reserve") await Promise.race([isKillerCalled.promise, sleep(2500)]);
    else await sleep(50);
    underWay.delete(call);
    return done();
  });
  await eventually(() => assert.equal(underWay.size, neighbours.length));
  await hurry(killer);
  for (const id of [killer, ...neighbours]) await at.ends(id, 'COMPLETED');
  assert.deepEqual(besideIt, []);
  assert.deepEqual(await marksOf(killer), { failed_rounds: 0, runs_alone: false });
});

test('a saga with one attempt left after a lost worker runs alone', async (t) => {
  const workflow = workflowOf('two-attempts', {
    retry: { maxAttempts: 2, backoff: 'fixed', initialIntervalMs: 60_000 },
  });
  const called = Promise.withResolvers<void>();
  const paused = at.newEngine(() => {
    called.resolve();
    return new Promise(() => {});
  });
  const id = await at.start(workflow);
  await paused.start();
  await called.promise;
  await at.db.query(sql`UPDATE saga.saga_states SET lease_until = now() WHERE id = ${id}`);
  await reapSagas(at.db);
  void paused.stop(AbortSignal.timeout(100));
  await startEngine(t);
  await eventually(async () => assert.deepEqual(await marksOf(id), { failed_rounds: 1, runs_alone: true }));
  await hurry(id);
  await at.ends(id, 'COMPLETED');
});

test('a saga that is lost with five workers in a row waits for a person, and nothing of it is called', async (t) => {
  const id = await at.start(workflowOf('deadly'));
  for (let lost = 1; lost <= 5; lost += 1) await loseWorker(id);
  await startEngine(t);
  assert.match((await untilPersonIsAsked(id)) ?? '', /5 rounds in a row failed/);
  assert.deepEqual(at.calls, []);
  const told = await at.db.query<{ kind: string }>(sql`
    SELECT kind FROM platform.notify_events WHERE slice = 'saga' AND item_id = ${id}`);
  assert.deepEqual(told, [{ kind: 'stuck' }]);
  assert.deepEqual(await marksOf(id), { failed_rounds: 0, runs_alone: false });
});

for (const error of ['check_violation', 'internal_error'])
  test(`a saga whose call cannot be opened (${error}) ends with a person who is told why, and keeps no other`, async (t) => {
    const id = await at.start(workflowOf(error, { name: error }));
    const other = await at.start(workflowOf('storable'));
    await at.db.query(sql`
    CREATE FUNCTION saga.refuse_opening() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'no room for this one' USING ERRCODE = NEW.step_name; END $$`);
    await at.db.query(sql`
    CREATE TRIGGER refuse_opening BEFORE INSERT ON saga.saga_step_logs FOR EACH ROW
    WHEN (NEW.step_name IN ('check_violation', 'internal_error') AND NEW.status IS NULL)
    EXECUTE FUNCTION saga.refuse_opening()`);
    t.after(() => at.db.query(sql`DROP FUNCTION saga.refuse_opening() CASCADE`));
    await startEngine(t);
    await at.ends(other, 'COMPLETED');
    await eventually(async () => {
      const [row] = await at.db.query<{ stays_away: boolean }>(sql`
      SELECT failed_rounds > 0 AND wake_at > now() AS stays_away FROM saga.saga_states WHERE id = ${id}`);
      assert.equal(row?.stays_away, true);
    });
    assert.match((await untilPersonIsAsked(id)) ?? '', /cannot be stored: no room for this one/);
    assert.deepEqual(at.calls, ['reserve', 'charge'], 'those of the other one');
  });

test('sagas that nobody can read, through no fault of theirs, are given back and blamed for nothing', async () => {
  const id = await at.start(workflowOf('unread'));
  await at.db.query(sql`UPDATE saga.saga_states SET status = 'RUNNING' WHERE id = ${id}`);
  await at.db.query(sql`ALTER TABLE saga.saga_step_logs RENAME TO hidden_logs`);
  const engine = at.engineSql();
  const claim = { limit: 10, bytes: 1, leaseMs: 15_000, alone: false } as const;
  try {
    await assert.rejects(engine.claim(claim), /saga_step_logs/);
    assert.equal((await at.find(id)).lease_owner, null);
    assert.deepEqual(await marksOf(id), { failed_rounds: 0, runs_alone: false });
  } finally {
    await at.db.query(sql`ALTER TABLE saga.hidden_logs RENAME TO saga_step_logs`);
  }
  await hurry(id);
  const [saga] = await engine.claim(claim);
  assert.equal(saga?.id, id);
});

test('a saga that nobody can read comes back later and later, and then a person is told which one and why', async (t) => {
  const id = await at.start(workflowOf('unreadable'));
  await at.db.query(sql`UPDATE saga.saga_states SET status = 'RUNNING' WHERE id = ${id}`);
  await at.db.query(sql`
    INSERT INTO saga.saga_step_logs (saga_id, step_index, step_name, action, attempt, started_at)
    VALUES (${id}, 0, 'reserve', 'EXECUTE', 1, 'infinity')`);
  const engine = at.engineSql();
  const pauses: number[] = [];
  for (let failed_rounds = 1; failed_rounds < 5; failed_rounds += 1) {
    await assert.rejects(
      engine.claim({ limit: 10, bytes: 1, leaseMs: 15_000, alone: false }),
      new RegExp(`saga ${id} cannot be read`),
    );
    const [row] = await at.db.query<{ pause_s: number }>(sql`
      SELECT date_part('epoch', wake_at - now()) AS pause_s FROM saga.saga_states
      WHERE id = ${id} AND failed_rounds = ${failed_rounds} AND lease_owner IS NULL`);
    pauses.push(row?.pause_s ?? assert.fail(`no pause after ${failed_rounds}`));
    await hurry(id);
  }
  assert.ok((pauses[3] ?? 0) > 4 * (pauses[0] ?? 0), `pauses of ${pauses.join(', ')} s`);
  await startEngine(t);
  assert.match((await untilPersonIsAsked(id)) ?? '', /^it cannot be read: /);
  const told = await at.db.query<{ kind: string; subject: string }>(sql`
    SELECT kind, subject FROM platform.notify_events WHERE slice = 'saga' AND item_id = ${id}`);
  assert.deepEqual(told, [{ kind: 'stuck', subject: 'unreadable' }]);
  assert.deepEqual(await marksOf(id), { failed_rounds: 0, runs_alone: false });
});

test('the last attempt that a saga has after a lost worker is opened in no company', async (t) => {
  const once = workflowOf('once', { retry: { maxAttempts: 1, backoff: 'fixed', initialIntervalMs: 5 } });
  const id = await at.start(once);
  await loseWorker(id);
  const neighbours = await Promise.all(Array.from({ length: 5 }, () => at.start(workflowOf('beside'))));
  const underWay = new Set<string>();
  const besideIt: string[] = [];
  await startEngine(t, async ({ saga, stepName }) => {
    const isLast = saga.id === id && stepName === 'reserve';
    if (isLast) besideIt.push(...underWay);
    underWay.add(saga.id);
    await sleep(200);
    if (isLast) besideIt.push(...[...underWay].filter((one) => one !== id));
    underWay.delete(saga.id);
    return done();
  });
  for (const one of [id, ...neighbours]) await at.ends(one, 'COMPLETED');
  assert.deepEqual(besideIt, []);
});

test('a saga that waits for a person after lost workers begins anew afterwards', async (t) => {
  const id = await at.start(
    workflowOf('no-way-back', {
      undo: { kind: 'absent' },
      retry: { maxAttempts: 1, backoff: 'fixed', initialIntervalMs: 5 },
    }),
  );
  await at.db.query(sql`
    UPDATE saga.saga_states SET status = 'RUNNING', failed_rounds = 3, runs_alone = true WHERE id = ${id}`);
  await at.db.query(sql`
    INSERT INTO saga.saga_step_logs (saga_id, step_index, step_name, action, attempt, started_at)
    VALUES (${id}, 0, 'reserve', 'EXECUTE', 1, now())`);
  await loseWorker(id);
  await startEngine(t);
  await untilPersonIsAsked(id);
  assert.deepEqual(await marksOf(id), { failed_rounds: 0, runs_alone: false });
});
