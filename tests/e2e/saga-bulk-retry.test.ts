import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, type Answer } from '../support/api-client.ts';
import { emptySagas } from '../support/empty-sagas.ts';
import { hostileBodies } from '../support/hostile-input.ts';
import { root, startSagaSystem, step, stepWithoutUndo, type SagaSystem } from '../support/saga-system.ts';

type Retried = Readonly<{
  preview: false;
  retried: number;
  skipped: number;
  skipped_sagas: readonly Readonly<{ saga_id: string; reason: string }>[];
  remaining: number;
  has_more: boolean;
}>;

type Preview = Readonly<{
  preview: true;
  matched: number;
  has_more: boolean;
  not_retryable: number;
  sample: readonly Readonly<{
    saga_id: string;
    workflow_name: string;
    step: string;
    action: string;
    error_class: string | null;
    reason: string;
  }>[];
}>;

const ask = <Body = Retried>(at: SagaSystem, body: object, actor = 'ann'): Promise<Answer<Body>> =>
  at.system.api.post<Body>(`${root}/retry`, body, { 'x-actor': actor });

async function retry(at: SagaSystem, body: object): Promise<Retried> {
  const answer = await ask(at, { reason: 'it is back', ...body });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

async function preview(at: SagaSystem, body: object): Promise<Preview> {
  const answer = await ask<Preview>(at, { ...body, preview: true });
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

describe('with nobody who runs sagas', () => {
  let at: SagaSystem;
  before(async () => void (at = await startSagaSystem({ env: { ROLES: 'api' } })));
  after(() => at.drop());
  beforeEach(() => emptySagas(at.system.db));

  type Stuck = Readonly<{
    op?: 'EXECUTE' | 'COMPENSATE';
    step?: number;
    answer?: 'refused' | 'defect' | 'unknown' | 'unserved';
    isLast?: boolean;
    created?: string;
    count?: number;
  }>;

  /** Sagas as they wait for a person, with the attempts that brought them there; their ids, oldest first. */
  async function stuckSagas(workflow: string, stuck: Stuck = {}): Promise<readonly string[]> {
    const { op = 'COMPENSATE', step: at_ = 0, answer = 'refused', isLast = false, count = 1 } = stuck;
    const rows = await at.system.db.query<{ id: string }>(sql`
      WITH added AS (
        INSERT INTO saga.saga_states
          (workflow_name, definition_hash, status, current_step, compensation, needs_attention, stuck_step, stuck_op,
           stuck_reason, error_message, lease_epoch, created_at, updated_at)
        SELECT w.name, w.current_hash, ${op === 'COMPENSATE' ? 'COMPENSATING' : 'RUNNING'}, 1,
               ${op === 'COMPENSATE' ? 'stuck' : 'none'}, true, ${at_}, ${op}, 'HTTP 422', 'pay: no', 7,
               ${stuck.created ?? '2026-02-01T00:00:00Z'}, now()
        FROM saga.workflows w, generate_series(1, ${count}::int) WHERE w.name = ${workflow} RETURNING id, definition_hash
      ), logged AS (
        INSERT INTO saga.saga_step_logs
          (saga_id, step_index, step_name, action, attempt, status, answer, is_last, started_at, completed_at)
        SELECT added.id, l.step, 'x', l.action, 1, CASE l.answer WHEN 'done' THEN 'SUCCESS' ELSE 'FAILED' END, l.answer,
               l.is_last, '2026-02-01', '2026-02-01'
        FROM added, (VALUES (0, 'EXECUTE', ${op === 'COMPENSATE' || at_ > 0 ? 'done' : answer}, ${isLast}::boolean),
                            (1, 'EXECUTE', ${op === 'COMPENSATE' ? 'refused' : answer}, ${isLast}::boolean),
                            (0, 'COMPENSATE', ${answer}, ${isLast}::boolean)) AS l (step, action, answer, is_last)
        WHERE (l.action = 'EXECUTE' OR ${op} = 'COMPENSATE') AND (l.step = 0 OR ${op} = 'COMPENSATE' OR l.step <= ${at_})
      )
      SELECT id FROM added ORDER BY id`);
    return rows.map(({ id }) => id);
  }

  const twoSteps = [step('reserve'), stepWithoutUndo('pay')];
  const stillStuck = async (): Promise<number> => {
    const rows = await at.system.db.query(sql`SELECT 1 FROM saga.saga_states WHERE needs_attention`);
    return rows.length;
  };

  test('a filter means those of a workflow, a step, an action, a class of error, a time or an id', async () => {
    const [one, other] = [await at.register(twoSteps), await at.register(twoSteps)];
    const [refused = ''] = await stuckSagas(one);
    const [unknown = ''] = await stuckSagas(one, { answer: 'unknown', created: '2026-01-15T12:00:00Z' });
    const [forward = ''] = await stuckSagas(other, { op: 'EXECUTE', step: 1, answer: 'unserved' });
    await at.system.db.query(sql`
      UPDATE saga.saga_states SET updated_at = '2026-03-01T12:00:00Z' WHERE id = ${forward}`);
    const matched = async (filter: object): Promise<readonly string[]> => {
      const { sample, matched: count } = await preview(at, filter);
      assert.equal(count, sample.length);
      return sample.map(({ saga_id: id }) => id);
    };
    assert.deepEqual(await matched({ workflow_name: one }), [refused, unknown].toSorted());
    assert.deepEqual(await matched({ step: 'pay' }), [forward]);
    assert.deepEqual(await matched({ step: 'pay', workflow_name: one }), []);
    assert.deepEqual(await matched({ action: 'EXECUTE' }), [forward]);
    assert.deepEqual(await matched({ error_class: 'refused' }), [refused]);
    assert.deepEqual(await matched({ error_class: 'unserved' }), [forward]);
    assert.deepEqual(await matched({ created_to: '2026-01-16T00:00:00Z' }), [unknown]);
    assert.deepEqual(await matched({ workflow_name: one, created_from: '2026-01-16T00:00:00+00:00' }), [
      refused,
    ]);
    assert.deepEqual(
      await matched({ stuck_from: '2026-03-01T00:00:00Z', stuck_to: '2026-03-02T00:00:00Z' }),
      [forward],
    );
    assert.deepEqual(await matched({ saga_ids: [unknown.toUpperCase()] }), [unknown]);
  });

  test('a workflow that nobody has registered, and no saga is of, is not found', async () => {
    await stuckSagas(await at.register(twoSteps));
    for (const name of ['nosuch', "' OR true --"])
      for (const more of [{ preview: true }, { reason: 'x' }])
        assertError(await ask(at, { workflow_name: name, ...more }), 404, 'SYS_SAGA_NOT_FOUND');
    await at.system.db.query(sql`
      INSERT INTO saga.saga_states (workflow_name, status, lease_epoch) VALUES ('of-old', 'RUNNING', 1)`);
    assert.equal((await retry(at, { workflow_name: 'of-old' })).retried, 0);
    assert.equal(await stillStuck(), 1);
  });

  test('a preview counts, shows some, and changes nothing', async () => {
    const name = await at.register(twoSteps);
    await stuckSagas(name, { count: 25 });
    const { matched, has_more, sample, not_retryable } = await preview(at, { workflow_name: name });
    assert.deepEqual([matched, has_more, not_retryable, sample.length], [25, false, 0, 10]);
    const [first] = sample;
    assert.deepEqual(
      [first?.workflow_name, first?.step, first?.action, first?.error_class, first?.reason],
      [name, 'reserve', 'COMPENSATE', 'refused', 'HTTP 422'],
    );
    assert.equal(await stillStuck(), 25);
  });

  test('each is tried again with the word of who did it; asked again there is nothing left', async () => {
    const name = await at.register(twoSteps);
    await stuckSagas(name, { count: 120 });
    assert.deepEqual(await retry(at, { workflow_name: name }), {
      preview: false,
      retried: 120,
      skipped: 0,
      skipped_sagas: [],
      remaining: 0,
      has_more: false,
    });
    const rows = await at.system.db.query(sql`
      SELECT count(*)::int AS count, count(DISTINCT t.lease_epoch)::int AS epochs
      FROM saga.saga_states t JOIN saga.saga_step_logs l ON l.saga_id = t.id
      WHERE l.actor = 'ann' AND l.reason = 'it is back' AND l.action = 'COMPENSATE' AND t.wake_at IS NOT NULL
        AND NOT t.needs_attention AND t.compensation = 'running' AND t.lease_owner IS NULL`);
    assert.deepEqual(rows, [{ count: 120, epochs: 120 }]);
    assert.equal((await retry(at, { workflow_name: name })).retried, 0);
  });

  test('no more are taken than the limit says, the oldest first, and how many are left is told', async () => {
    const name = await at.register(twoSteps);
    const ids = await stuckSagas(name, { count: 5 });
    const first = await retry(at, { workflow_name: name, limit: 3 });
    assert.deepEqual([first.retried, first.remaining, first.has_more], [3, 2, true]);
    const { sample } = await preview(at, { workflow_name: name });
    assert.deepEqual(
      sample.map(({ saga_id: id }) => id),
      ids.slice(3),
    );
    const second = await retry(at, { workflow_name: name, limit: 3 });
    assert.deepEqual([second.retried, second.remaining, second.has_more], [2, 0, false]);
  });

  test('several requests and single retries at once try each saga again once', async () => {
    const name = await at.register(twoSteps);
    const ids = await stuckSagas(name, { count: 60 });
    const single = ids
      .filter((_, i) => i % 10 === 0)
      .map((id) => at.system.api.post(`${root}/${id}/steps/reserve/retry`, { reason: 'by hand' }));
    const [answers, singles] = await Promise.all([
      Promise.all(Array.from({ length: 4 }, () => retry(at, { workflow_name: name }))),
      Promise.all(single),
    ]);
    const bulk = answers.reduce((sum, { retried }) => sum + retried, 0);
    const byHand = singles.filter(({ status }) => status === 200).length;
    assert.equal(bulk + byHand, 60);
    assert.equal(await stillStuck(), 0);
  });

  test('a saga that somebody else has locked does not hold up the others, and is told', async () => {
    const name = await at.register(twoSteps);
    const [locked = ''] = await stuckSagas(name, { count: 4 });
    await at.system.db.transaction(async (tx) => {
      await tx.query(sql`SELECT 1 FROM saga.saga_states WHERE id = ${locked} FOR UPDATE`);
      const done = await retry(at, { workflow_name: name });
      assert.deepEqual([done.retried, done.skipped_sagas], [3, [{ saga_id: locked, reason: 'busy' }]]);
    });
    assert.equal((await retry(at, { workflow_name: name })).retried, 1);
  });

  test('one person at a locked saga is told that it is busy, in time', async () => {
    const name = await at.register(twoSteps);
    const [locked = ''] = await stuckSagas(name);
    await at.system.db.transaction(async (tx) => {
      await tx.query(sql`SELECT 1 FROM saga.saga_states WHERE id = ${locked} FOR UPDATE`);
      const one = await at.system.api.post(`${root}/${locked}/steps/reserve/retry`, { reason: 'x' });
      assertError(one, 409, 'SYS_SAGA_BUSY');
      assert.equal(one.headers.get('retry-after'), '1');
      // Idle for too long in its transaction, this session would be ended.
      await tx.query(sql`SELECT 1`);
      assertError(await at.system.api.post(`${root}/${locked}/cancel`, {}), 409, 'SYS_SAGA_BUSY');
    });
  });

  test('calls that must not be repeated, and undos that there are not, are left to a person each', async () => {
    const name = await at.register(twoSteps);
    const [last = ''] = await stuckSagas(name, { answer: 'unknown', isLast: true });
    const [noUndo = ''] = await stuckSagas(name);
    await at.system.db.query(sql`
      DELETE FROM saga.saga_step_logs WHERE saga_id = ${noUndo} AND action = 'COMPENSATE'`);
    await stuckSagas(name);
    const seen = await preview(at, { workflow_name: name });
    assert.deepEqual([seen.matched, seen.not_retryable], [3, 2]);
    const done = await retry(at, { workflow_name: name, limit: 1 });
    assert.deepEqual([done.retried, done.skipped, done.remaining, done.has_more], [1, 2, 0, false]);
    assert.deepEqual(
      done.skipped_sagas,
      [
        { saga_id: last, reason: 'not_idempotent' },
        { saga_id: noUndo, reason: 'no_undo' },
      ].toSorted((a, b) => (a.saga_id < b.saga_id ? -1 : 1)),
    );
    const named = await retry(at, { saga_ids: [last, noUndo] });
    assert.deepEqual([named.retried, named.skipped_sagas], [1, [{ saga_id: noUndo, reason: 'no_undo' }]]);
  });

  test('hostile filters are refused, and nothing is retried', async () => {
    const name = await at.register(twoSteps);
    await stuckSagas(name);
    const bodies: readonly unknown[] = [
      undefined,
      null,
      {},
      { limit: 5, reason: 'x' },
      { preview: true },
      { workflow_name: name },
      { workflow_name: name, reason: ' ' },
      { workflow_name: '', reason: 'x' },
      { workflow_name: 'x'.repeat(256), reason: 'x' },
      { workflow_name: [name], reason: 'x' },
      { workflow_name: 'a\0b', reason: 'x' },
      { workflow_name: name, step: '', reason: 'x' },
      { workflow_name: name, action: 'UNDO', reason: 'x' },
      { workflow_name: name, error_class: 'done', reason: 'x' },
      { workflow_name: name, created_from: 'yesterday', reason: 'x' },
      { workflow_name: name, stuck_to: '2026-02-30T00:00:00Z', reason: 'x' },
      { workflow_name: name, saga_ids: [], reason: 'x' },
      { workflow_name: name, saga_ids: ['x'], reason: 'x' },
      { workflow_name: name, saga_ids: Array.from({ length: 1001 }, () => crypto.randomUUID()), reason: 'x' },
      { workflow_name: name, limit: 0, reason: 'x' },
      { workflow_name: name, limit: 10_001, reason: 'x' },
      { workflow_name: name, preview: 'yes', reason: 'x' },
      { workflow_name: name, status: 'RUNNING', reason: 'x' },
    ];
    for (const body of bodies) {
      const answer = await at.system.api.post(`${root}/retry`, body);
      assertError(answer, 400, 'SYS_SAGA_VALIDATION_ERROR');
    }
    for (const { name: what, body } of hostileBodies) {
      const headers = { 'content-type': 'application/json' };
      const answer = await at.system.api.raw({ method: 'POST', path: `${root}/retry`, headers, body });
      assert.ok(answer.status >= 400 && answer.status < 500, `${what}: ${answer.text}`);
    }
    assert.equal(await stillStuck(), 1);
  });
});

test('sagas that an outage has left with a person end by one call', async (t) => {
  const at = await startSagaSystem();
  t.after(() => at.drop());
  let isBack = false;
  at.shop.setScript(({ what }) => {
    if (what === 'charge') return { status: 409, body: { error: 'declined' } };
    return what === 'undo reserve' && !isBack ? { status: 400, body: { error: 'away' } } : undefined;
  });
  const name = await at.register([step('reserve'), step('charge')]);
  const ids = await Promise.all(Array.from({ length: 20 }, () => at.start(name)));
  for (const id of ids) await at.waitsForPerson(id);
  isBack = true;
  const done = await retry(at, { workflow_name: name, error_class: 'defect' });
  assert.deepEqual([done.retried, done.skipped], [20, 0]);
  for (const id of ids) {
    const told = await at.becomes(id, 'FAILED');
    assert.equal(told.saga.compensation, 'done');
  }
});
