import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { PoolClient } from 'pg';
import { inMs, newStep, openGuardScene, type GuardScene } from '../../../tests/support/guarded-steps.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { refuse } from './guard-reply.ts';
import type { ActionHandler, Guarded } from './guarded-action.ts';
import type { UndoCall } from './guarded-undo.ts';

let scene: GuardScene;
before(async () => void (scene = await openGuardScene()));
after(() => scene.close());

const reserveHandler: ActionHandler<unknown, unknown, PoolClient> = async (tx, { sagaId }) => {
  await scene.effect(tx, sagaId, 'action');
  return { reservation_id: `r-${sagaId}`, b: 1, a: 2 };
};

const reserving = (): Guarded => scene.guard.action(reserveHandler);

const releasing = (): Guarded =>
  scene.guard.undo(async (tx, { sagaId }) => {
    await scene.effect(tx, sagaId, 'undo');
    return { released: true };
  });

test('the same action twice has one effect and one answer, to the byte', async () => {
  const step = newStep();
  const reserve = reserving();
  const first = await reserve(step.action({ sku: 'shoe', qty: 1 }));
  const second = await reserve(step.action({ qty: 1, sku: 'shoe' }, { 'saga-attempt': '2' }));
  assert.equal(first.status, 200);
  assert.equal(first.body, `{"reservation_id":"r-${step.sagaId}","b":1,"a":2}`);
  assert.deepEqual(second, first);
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action']);
});

test('the same step with another body is refused with 422', async () => {
  const step = newStep();
  const reserve = reserving();
  await reserve(step.action({ qty: 1 }));
  const other = await reserve(step.action({ qty: 2 }));
  assert.deepEqual([other.status, other.result], [422, 'mismatch']);
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action']);
});

test('a refusal takes back what the handler wrote, and is told again without asking the handler', async () => {
  for (const isThrown of [true, false]) {
    const step = newStep();
    let calls = 0;
    const reserve = scene.guard.action(async (tx, { sagaId }) => {
      calls += 1;
      await scene.effect(tx, sagaId, 'action');
      const refusal = refuse({ reason: 'sold out' }, 422);
      if (isThrown) throw refusal;
      return refusal;
    });
    const first = await reserve(step.action());
    assert.deepEqual([first.status, first.body], [422, '{"reason":"sold out"}']);
    assert.deepEqual(await reserve(step.action()), first);
    assert.equal(calls, 1);
    assert.deepEqual(await scene.effectsOf(step.sagaId), []);
    assert.equal(await scene.phaseOf(step.sagaId), 'refused');
    assert.equal((await releasing()(step.undo())).status, 204);
    assert.deepEqual(await scene.effectsOf(step.sagaId), []);
  }
});

test('an exception takes back everything, so that the next call begins anew', async () => {
  const step = newStep();
  let calls = 0;
  const reserve = scene.guard.action(async (tx, { sagaId }) => {
    await scene.effect(tx, sagaId, 'action');
    if ((calls += 1) === 1) throw new Error('the shelf is broken');
    return null;
  });
  assert.deepEqual(await reserve(step.action()).then(({ status, result }) => [status, result]), [
    500,
    'failed',
  ]);
  assert.equal(await scene.phaseOf(step.sagaId), null);
  assert.ok(scene.errors.some((error) => error instanceof Error && error.message === 'the shelf is broken'));
  assert.equal((await reserve(step.action())).status, 200);
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action']);
});

test('an undo before its action succeeds, and the late action finds that it has been undone', async () => {
  const step = newStep();
  const undone = await releasing()(step.undo());
  assert.deepEqual([undone.status, undone.body], [204, null]);
  const late = await reserving()(step.action());
  assert.deepEqual([late.status, late.result], [409, 'already-compensated']);
  assert.deepEqual(await scene.effectsOf(step.sagaId), []);
});

test('an undo gets what its action answered, happens once, and is told again', async () => {
  const step = newStep();
  const calls: UndoCall[] = [];
  const release = scene.guard.undo(async (tx, call) => {
    calls.push(call);
    await scene.effect(tx, call.sagaId, 'undo');
    return { released: calls.length };
  });
  await reserving()(step.action());
  const first = await release(step.undo());
  assert.equal(first.body, '{"released":1}');
  assert.deepEqual(await release(step.undo()), first);
  assert.deepEqual(
    calls.map(({ answer }) => answer),
    [{ reservation_id: `r-${step.sagaId}`, b: 1, a: 2 }],
  );
  assert.equal((await reserving()(step.action())).result, 'already-compensated');
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action', 'undo']);
});

test('a refused undo changes nothing and may be asked for again', async () => {
  const step = newStep();
  let isOpen = false;
  const release = scene.guard.undo(async (tx, { sagaId }) => {
    await scene.effect(tx, sagaId, 'undo');
    if (!isOpen) throw refuse({ reason: 'the books are closed' });
  });
  await reserving()(step.action());
  assert.equal((await release(step.undo())).status, 409);
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action']);
  isOpen = true;
  assert.equal((await release(step.undo())).status, 204);
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action', 'undo']);
});

test('after its deadline nothing begins, and what is known is told', async () => {
  const late = { 'saga-deadline': inMs(-60_000) };
  const step = newStep();
  const reserve = reserving();
  assert.deepEqual((await reserve(step.action({}, late))).status, 408);
  assert.equal((await releasing()(step.undo(late))).status, 408);
  assert.equal(await scene.phaseOf(step.sagaId), null);
  const first = await reserve(step.action({}));
  assert.deepEqual(await reserve(step.action({}, late)), first);
  assert.equal((await releasing()(step.undo(late))).status, 408);
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action']);
  const undone = await releasing()(step.undo());
  assert.deepEqual(await releasing()(step.undo(late)), undone);
});

test('a saga older than the retention gets no empty success for what nobody remembers', async () => {
  const old = { 'saga-started-at': inMs(-401 * 86_400_000) };
  const forgotten = newStep();
  assert.deepEqual(await releasing()(forgotten.undo(old)).then(({ status, result }) => [status, result]), [
    410,
    'forgotten',
  ]);
  assert.equal((await reserving()(forgotten.action({}, old))).status, 410);
  assert.equal(await scene.phaseOf(forgotten.sagaId), null);
  const known = newStep();
  await reserving()(known.action());
  assert.equal((await releasing()(known.undo(old))).status, 200);
});

test('who meets a running action is told to ask again, and then gets its answer', async () => {
  const step = newStep();
  const started = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const reserve = scene.guard.action(async (tx, { sagaId }) => {
    await scene.effect(tx, sagaId, 'action');
    started.resolve();
    await gate.promise;
    return 'done';
  });
  const running = reserve(step.action());
  await started.promise;
  const [again, undo] = await Promise.all([reserve(step.action()), releasing()(step.undo())]);
  for (const reply of [again, undo])
    assert.deepEqual([reply.status, reply.result, reply.retryAfterSecs], [202, 'working', 1]);
  gate.resolve();
  const first = await running;
  assert.deepEqual(await reserve(step.action()), first);
  assert.equal((await releasing()(step.undo())).status, 200);
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action', 'undo']);
});

for (const code of ['40001', '40P01'])
  test(`the whole handler runs again after ${code}`, async () => {
    const step = newStep();
    let calls = 0;
    const reserve = scene.guard.action(async (tx, { sagaId }) => {
      await scene.effect(tx, sagaId, 'action');
      if ((calls += 1) < 3) await tx.query(`DO $$ BEGIN RAISE 'conflict' USING ERRCODE = '${code}'; END $$`);
      return calls;
    });
    assert.equal((await reserve(step.action())).body, '3');
    assert.deepEqual(await scene.effectsOf(step.sagaId), ['action']);
  });

test('a handler that always meets a conflict fails in the end', async () => {
  let calls = 0;
  const reserve = scene.guard.action((tx) => {
    calls += 1;
    return tx.query(`DO $$ BEGIN RAISE 'conflict' USING ERRCODE = '40001'; END $$`);
  });
  assert.equal((await reserve(newStep().action())).status, 500);
  assert.equal(calls, 6);
});

test('the guard works whatever the defaults of the sessions are, and leaves the handler its own lock timeout', async () => {
  const step = newStep();
  const guard = scene.openGuard({
    options:
      '-c default_transaction_isolation=serializable -c default_transaction_read_only=on -c lock_timeout=7s -c synchronous_commit=off',
  });
  const settings: unknown[] = [];
  const reserve = guard.action(async (tx, { sagaId }) => {
    const { rows } = await tx.query(`
      SELECT current_setting('transaction_isolation') AS isolation, current_setting('lock_timeout') AS wait,
             current_setting('synchronous_commit') AS durable`);
    settings.push(...rows);
    await scene.effect(tx, sagaId, 'action');
    return 'done';
  });
  const replies = await Promise.all(Array.from({ length: 8 }, () => reserve(step.action())));
  assert.deepEqual(new Set(replies.map(({ body }) => body)), new Set(['"done"']));
  assert.deepEqual(settings, [{ isolation: 'read committed', wait: '7s', durable: 'on' }]);
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action']);
});

test('a handler that commits by itself fails, and its step can still be undone', async () => {
  const step = newStep();
  const reserve = scene.guard.action(async (tx, { sagaId }) => {
    await scene.effect(tx, sagaId, 'action');
    await tx.query('COMMIT');
  });
  assert.equal((await reserve(step.action())).status, 500);
  assert.equal((await reserve(step.action())).status, 500);
  assert.equal((await releasing()(step.undo())).status, 200);
  assert.deepEqual(await scene.effectsOf(step.sagaId), ['action', 'undo']);
});

test('a handler that hides an error of its transaction fails', async () => {
  const step = newStep();
  const reserve = scene.guard.action(async (tx) => {
    await tx.query('SELECT 1/0').catch(() => {});
    return 'done';
  });
  assert.equal((await reserve(step.action())).status, 500);
  assert.equal(await scene.phaseOf(step.sagaId), null);
});

test('an answer that cannot be kept is the fault of its handler, and nothing is done', async () => {
  for (const answer of [10n, 'x'.repeat(300_000), new Map([[1, 2]]), Number.NaN]) {
    const step = newStep();
    const reserve = scene.guard.action(async (tx, { sagaId }) => {
      await scene.effect(tx, sagaId, 'action');
      return answer;
    });
    assert.equal((await reserve(step.action())).status, 500);
    assert.deepEqual(await scene.effectsOf(step.sagaId), []);
  }
});

test('NUL and lone surrogates in an answer are kept as JSON writes them', async () => {
  const step = newStep();
  const reserve = scene.guard.action(() => ({ text: '\0\ud800' }));
  const first = await reserve(step.action());
  assert.equal(first.body, '{"text":"\\u0000\\ud800"}');
  assert.deepEqual(await reserve(step.action()), first);
});

test('a call that is not one of a saga is refused with 400', async () => {
  const step = newStep();
  const good = step.action();
  for (const name of ['saga-id', 'saga-step', 'saga-op', 'saga-started-at', 'saga-deadline'])
    for (const value of [undefined, '', 'x\0y', '\ud800', 'x'.repeat(3000)]) {
      const reply = await reserving()({ ...good, headers: { ...good.headers, [name]: value } });
      assert.deepEqual([reply.status, reply.result], [400, 'bad-request'], `${name}: ${value}`);
    }
  assert.equal((await reserving()(step.undo())).status, 400);
  assert.equal((await releasing()(good)).status, 400);
  for (const body of [{ a: '\0' }, ['\ud800'], JSON.parse('['.repeat(2000) + ']'.repeat(2000))])
    assert.equal((await reserving()(step.action(body))).status, 400);
  assert.equal(await scene.phaseOf(step.sagaId), null);
});

test('a step may have the longest name that a saga can send', async () => {
  const step = newStep(randomBytes(1147).toString('hex') + 'x');
  assert.equal((await reserving()(step.action())).status, 200);
  assert.equal((await releasing()(step.undo())).status, 200);
});

test('what is old enough goes, and everything else stays', async () => {
  const keep = newStep();
  await reserving()(keep.action());
  const ages = [
    ['void', 6, true],
    ['void', 8, false],
    ['undone', 8, false],
    ['refused', 8, false],
    ['done', 8, true],
    ['done', 402, false],
    ['working', 399, true],
    ['working', 402, false],
  ] as const;
  for (const [phase, days] of ages)
    await scene.database.db.query(sql`
      INSERT INTO public.redrive_saga_steps (saga_id, step, phase, settled_at, lease_until)
      VALUES (${`${phase}-${days}`}, 'aged', ${phase}, now() - ${days} * interval '1 day',
              CASE ${phase}::text WHEN 'working' THEN now() END)`);
  assert.equal(await scene.guard.cleanUp(), 5);
  const left = await scene.database.db.query<{ saga_id: string }>(sql`
    SELECT saga_id FROM public.redrive_saga_steps WHERE step = 'aged' ORDER BY saga_id`);
  assert.deepEqual(
    left.map(({ saga_id }) => saga_id),
    ages.flatMap(([phase, days, stays]) => (stays ? [`${phase}-${days}`] : [])).toSorted(),
  );
  assert.equal(await scene.phaseOf(keep.sagaId), 'done');
});

test('a service that may not create tables works once there is one', async () => {
  const role = `plain_${newStep().sagaId.slice(0, 8)}`;
  await scene.pool.query(`CREATE ROLE ${role}`);
  try {
    await scene.pool.query(`
      GRANT SELECT, INSERT, UPDATE, DELETE ON public.redrive_saga_steps TO ${role};
      GRANT INSERT ON effects TO ${role}`);
    const guard = scene.openGuard({ options: `-c role=${role}` });
    await guard.migrate();
    assert.equal((await guard.action(reserveHandler)(newStep().action())).status, 200);
    await guard.cleanUp();
  } finally {
    await scene.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
  }
});

test('a report that fails changes no answer', async () => {
  const guard = scene.openGuard(
    {},
    {
      onError: () => {
        throw new Error('the log is full');
      },
    },
  );
  const fail = guard.action(() => Promise.reject(new Error('no')));
  assert.equal((await fail(newStep().action())).status, 500);
});

test('many processes may migrate at once', async () => {
  const guards = Array.from({ length: 5 }, () => scene.openGuard({ max: 1 }));
  await Promise.all(guards.map((guard) => guard.migrate()));
});
