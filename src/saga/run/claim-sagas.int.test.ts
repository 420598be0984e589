import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { eventually } from '../../../tests/support/eventually.ts';
import { done, openSagaScene, stepOf, type SagaScene } from '../../../tests/support/saga-engine.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';
import type { LeasedSaga } from './leased-sagas.ts';
import type { EngineDeps } from './run-sagas.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());
// What one test has claimed is nothing for the next one.
afterEach(() => at.db.query(sql`UPDATE saga.saga_states SET wake_at = NULL`));

const workflow: Workflow = {
  name: 'order',
  deadlineMs: null,
  steps: [stepOf('reserve'), stepOf('charge')],
};

const claimFrom = (
  engine: Pick<EngineDeps, 'claim'>,
  limit: number,
  bytes = 1 << 30,
): Promise<readonly LeasedSaga[]> => engine.claim({ limit, bytes, leaseMs: 15_000, alone: false });

const startMany = async (count: number, payload?: unknown): Promise<readonly string[]> => {
  const ids: string[] = [];
  while (ids.length < count) ids.push(await at.start(workflow, payload));
  return ids;
};

test('a claim takes as many sagas as there is room for by their size, and always one; the rest is due as before', async () => {
  const blob = 'ballast!'.repeat(40_000);
  const ids = await startMany(5, { blob });
  const engine = at.engineSql();
  const first = await claimFrom(engine, 10, 700_000);
  assert.deepEqual(
    first.map(({ id, payload }) => [id, payload]),
    ids.slice(0, 2).map((id) => [id, { blob }]),
  );
  const left = await at.db.query<{ is_due: boolean }>(sql`
    SELECT lease_owner IS NULL AND wake_at <= now() AS is_due FROM saga.saga_states
    WHERE id = ANY(${ids.slice(2)}::uuid[])`);
  assert.deepEqual(
    left.map(({ is_due }) => is_due),
    [true, true, true],
  );
  const [third, ...none] = await claimFrom(engine, 10, 1);
  assert.deepEqual([third?.id, none], [ids[2], []]);
});

test('small sagas come all at once after large ones', async () => {
  await startMany(2, { blob: 'ballast!'.repeat(40_000) });
  const small = await startMany(50);
  const engine = at.engineSql();
  const seen = new Set<string>();
  for (let claims = 0; seen.size < 52; claims += 1) {
    assert.ok(claims < 12, `${seen.size} after ${claims} claims`);
    for (const { id } of await claimFrom(engine, 100, 300_000)) seen.add(id);
  }
  assert.ok(small.every((id) => seen.has(id)));
});

test('what the steps have answered is there when a large saga is claimed again', async () => {
  const answer = { blob: 'answer!!'.repeat(20_000) };
  const engine = at.newEngine(({ stepName }) =>
    stepName === 'reserve' ? done(answer) : { class: 'working', retryAfterMs: 3_600_000 },
  );
  const id = await at.start(workflow);
  await engine.start();
  await at.until(id, ({ current_step, lease_owner }) => current_step === 1 && lease_owner === null);
  await engine.stop(AbortSignal.timeout(500));
  await at.db.query(sql`UPDATE saga.saga_states SET wake_at = now() WHERE id = ${id}`);
  const [saga] = await claimFrom(at.engineSql(), 1);
  assert.deepEqual(saga?.state.outputs, { reserve: answer });
  assert.deepEqual(
    saga?.state.log.map(({ output }) => output),
    [answer, null],
  );
  assert.ok(saga.bytes > 160_000);
});

test('a saga that cannot be read keeps no other: it stays away, and all others are claimed', async () => {
  const ids = await startMany(9);
  const [bad = ''] = ids.slice(4);
  await at.db.query(sql`UPDATE saga.saga_states SET status = 'RUNNING' WHERE id = ${bad}`);
  await at.db.query(sql`
    INSERT INTO saga.saga_step_logs (saga_id, step_index, step_name, action, attempt, started_at)
    VALUES (${bad}, 0, 'reserve', 'EXECUTE', 1, 'infinity')`);
  const engine = at.engineSql();
  const seen = new Set<string>();
  await eventually(async () => {
    for (const { id } of await claimFrom(engine, 100)) seen.add(id);
    assert.equal(seen.size, 8);
  });
  assert.ok(!seen.has(bad));
  const [row] = await at.db.query<{ failed_rounds: number; lease_owner: string | null }>(sql`
    SELECT failed_rounds, lease_owner FROM saga.saga_states WHERE id = ${bad}`);
  assert.ok(row !== undefined && row.failed_rounds > 0 && row.lease_owner === null);
});

test('a saga that becomes due before the place where the claims have come is found within a moment', async () => {
  await startMany(200);
  const engine = at.engineSql();
  await claimFrom(engine, 1);
  await claimFrom(engine, 1);
  const late = await at.start(workflow);
  await at.db.query(sql`UPDATE saga.saga_states SET wake_at = now() - interval '1 hour' WHERE id = ${late}`);
  const seen: string[] = [];
  await eventually(
    async () => {
      seen.push(...(await claimFrom(engine, 1)).map(({ id }) => id));
      assert.ok(seen.includes(late));
    },
    { withinMs: 5000 },
  );
});

test('a saga with which the claim itself fails is found and blamed, and all others are claimed', async (t) => {
  const ids = await startMany(9);
  const [bad = ''] = ids.slice(4);
  await at.db.query(sql`
    CREATE FUNCTION saga.refuse_reading() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF current_query() LIKE '%pg_column_size%' THEN
        RAISE EXCEPTION 'missing chunk of a value' USING ERRCODE = 'data_corrupted';
      END IF;
      RETURN NEW;
    END $$`);
  await at.db.query(sql`
    CREATE TRIGGER refuse_reading BEFORE UPDATE ON saga.saga_states FOR EACH ROW
    WHEN (OLD.payload @> '{"bad": true}') EXECUTE FUNCTION saga.refuse_reading()`);
  t.after(() => at.db.query(sql`DROP FUNCTION saga.refuse_reading() CASCADE`));
  await at.db.query(sql`UPDATE saga.saga_states SET payload = '{"bad": true}' WHERE id = ${bad}`);
  const engine = at.engineSql();
  const seen = new Set<string>();
  const errors: unknown[] = [];
  await eventually(async () => {
    const held = await claimFrom(engine, 100).catch((error: unknown) => void errors.push(error));
    for (const { id } of held ?? []) seen.add(id);
    assert.equal(seen.size, 8);
  });
  assert.ok(!seen.has(bad));
  assert.match(String(errors[0]), new RegExp(`saga ${bad} cannot be read: missing chunk`));
  assert.equal(errors.length, 1, 'one is to blame, and once');
  const rows = await at.db.query<{ id: string }>(
    sql`SELECT id FROM saga.saga_states WHERE failed_rounds > 0 AND id = ANY(${ids}::uuid[])`,
  );
  assert.deepEqual(rows, [{ id: bad }]);
});

test('what was claimed beyond the room is due again even where it cannot be given back at first', async (t) => {
  const ids = await startMany(4, { blob: 'ballast!'.repeat(40_000) });
  await at.db.query(sql`CREATE SEQUENCE public.given_back`);
  await at.db.query(sql`
    CREATE FUNCTION saga.refuse_once() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF nextval('public.given_back') = 1 THEN RAISE EXCEPTION 'not this time'; END IF;
      RETURN NEW;
    END $$`);
  await at.db.query(sql`
    CREATE TRIGGER refuse_once BEFORE UPDATE ON saga.saga_states FOR EACH ROW
    WHEN (OLD.lease_owner IS NOT NULL AND NEW.lease_owner IS NULL) EXECUTE FUNCTION saga.refuse_once()`);
  t.after(() => at.db.query(sql`DROP FUNCTION saga.refuse_once() CASCADE`));
  await assert.rejects(claimFrom(at.engineSql(), 10, 1), /not this time/);
  const rows = await at.db.query<{ id: string }>(sql`
    SELECT id FROM saga.saga_states WHERE wake_at <= now() AND lease_owner IS NULL AND failed_rounds = 0 ORDER BY wake_at, id`);
  assert.deepEqual(
    rows.map(({ id }) => id),
    ids,
  );
});
