import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { emptySagas } from '../../../tests/support/empty-sagas.ts';
import { openSagaScene, refused, stepOf, type SagaScene } from '../../../tests/support/saga-engine.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';
import { runTasks } from '../../platform/work/retention-tasks.ts';
import { sagaRetention, type SagaRetentionOptions } from './retention.ts';

let at: SagaScene;
before(async () => void (at = await openSagaScene()));
after(() => at.drop());
beforeEach(() => emptySagas(at.db));

const dayMs = 86_400_000;
const workflow: Workflow = { name: 'order', deadlineMs: null, steps: [stepOf('reserve'), stepOf('ship')] };

const archive = (more: Partial<SagaRetentionOptions> = {}, signal = new AbortController().signal) => {
  const options = {
    retentionMs: 30 * dayMs,
    archiveRetentionMs: 400 * dayMs,
    unsentEvents: async () => new Set<string>(),
    ...more,
  };
  return runTasks(sagaRetention(at.db, options), signal);
};

/** Sagas that were started, and last changed, this many days ago. */
async function add(status: string, days: Readonly<{ started: number; changed?: number }>, count = 1) {
  await at.db.query(sql`ALTER TABLE saga.saga_states DISABLE TRIGGER update_saga_states_updated_at`);
  const rows = await at.db.query<{ id: string }>(sql`
    INSERT INTO saga.saga_states (workflow_name, status, payload, created_at, updated_at)
    SELECT 'order', ${status}, '{"n": 1}', now() - ${days.started} * interval '1 day',
           now() - ${days.changed ?? days.started} * interval '1 day'
    FROM generate_series(1, ${count}::int)
    RETURNING id`);
  await at.db.query(sql`ALTER TABLE saga.saga_states ENABLE TRIGGER update_saga_states_updated_at`);
  const ids = rows.map(({ id }) => id);
  await at.db.query(sql`
    INSERT INTO saga.saga_step_logs (saga_id, step_index, step_name, action, status, attempt, completed_at)
    SELECT id, 0, 'reserve', 'EXECUTE', 'SUCCESS', 1, now() FROM unnest(${ids}::uuid[]) AS id`);
  return ids;
}

async function idsIn(
  table: 'saga_states' | 'saga_states_archive' | 'saga_step_logs' | 'saga_step_logs_archive',
) {
  const key = table.includes('logs') ? sql`saga_id` : sql`id`;
  const tables = {
    saga_states: sql`saga.saga_states`,
    saga_states_archive: sql`saga.saga_states_archive`,
    saga_step_logs: sql`saga.saga_step_logs`,
    saga_step_logs_archive: sql`saga.saga_step_logs_archive`,
  };
  const rows = await at.db.query<{ id: string }>(sql`SELECT ${key} AS id FROM ${tables[table]} ORDER BY 1`);
  return rows.map(({ id }) => id);
}

test('an ended saga is archived with its log, and nothing is lost', async (t) => {
  const engine = at.newEngine(({ stepName }) => (stepName === 'ship' ? refused('no carrier') : undefined));
  const id = await at.start(workflow);
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(500)));
  await at.ends(id, 'FAILED');
  const everything = async (states: 'live' | 'archived') => ({
    states: await at.db.query(
      states === 'live'
        ? sql`SELECT to_jsonb(s) - 'phase' AS row FROM saga.saga_states s`
        : sql`SELECT to_jsonb(s) - 'archived_at' AS row FROM saga.saga_states_archive s`,
    ),
    logs: await at.db.query(
      states === 'live'
        ? sql`SELECT to_jsonb(l) AS row FROM saga.saga_step_logs l ORDER BY id`
        : sql`SELECT to_jsonb(l) AS row FROM saga.saga_step_logs_archive l ORDER BY id`,
    ),
  });
  const before = await everything('live');
  assert.equal(before.logs.length, 3);
  assert.deepEqual(await archive(), { archived: 0, purged: 0, startKeys: 0 });
  assert.deepEqual(await archive({ retentionMs: 0 }), { archived: 1, purged: 0, startKeys: 0 });
  assert.deepEqual(await everything('archived'), before);
  assert.deepEqual(await idsIn('saga_states'), []);
  assert.deepEqual(await idsIn('saga_step_logs'), []);
});

test('only ended sagas are archived, and their age counts from the end', async () => {
  const stay = [
    ...(await add('STARTED', { started: 90 })),
    ...(await add('RUNNING', { started: 90 })),
    ...(await add('COMPENSATING', { started: 90 })),
    ...(await add('COMPLETED', { started: 90, changed: 29 })),
    ...(await add('COMPLETED', { started: 29 })),
  ];
  const go = [
    ...(await add('COMPLETED', { started: 90, changed: 31 })),
    ...(await add('FAILED', { started: 31 })),
    ...(await add('CANCELLED', { started: 31 })),
  ];
  assert.equal((await archive({ batchSize: 2 })).archived, 3);
  assert.deepEqual(await idsIn('saga_states'), stay.toSorted());
  assert.deepEqual(await idsIn('saga_states_archive'), go.toSorted());
  assert.deepEqual(await idsIn('saga_step_logs_archive'), go.toSorted());
});

test('a saga with undelivered events stays until they are delivered, and does not block others', async () => {
  const [unsent = '', ...others] = await add('COMPLETED', { started: 90 }, 5);
  const asked: string[] = [];
  const unsentEvents = async (_tx: unknown, ids: readonly string[]) => {
    asked.push(...ids);
    return new Set([unsent]);
  };
  assert.equal((await archive({ unsentEvents, batchSize: 2 })).archived, 4);
  assert.deepEqual(asked.toSorted(), [unsent, ...others].toSorted());
  assert.deepEqual(await idsIn('saga_states'), [unsent]);
  assert.equal((await archive()).archived, 1);
});

test('sagas that were started at the same time are archived in batches', async () => {
  await add('COMPLETED', { started: 90 }, 25);
  await add('RUNNING', { started: 90 }, 25);
  assert.equal((await archive({ batchSize: 10 })).archived, 25);
  assert.equal((await idsIn('saga_states')).length, 25);
});

test('a saga and its log cannot be deleted unless they are archived', async () => {
  const [id = ''] = await add('COMPLETED', { started: 90 });
  await assert.rejects(at.db.query(sql`DELETE FROM saga.saga_states WHERE id = ${id}`), { code: '23001' });
  await assert.rejects(at.db.query(sql`DELETE FROM saga.saga_states`), /is not archived/);
  assert.deepEqual([await idsIn('saga_states'), await idsIn('saga_step_logs')], [[id], [id]]);
});

test('a failed transaction leaves the saga where it was', async () => {
  const [id = ''] = await add('COMPLETED', { started: 90 });
  // The archive has a row of its log already, so the second of the three statements fails.
  await at.db.query(sql`INSERT INTO saga.saga_step_logs_archive SELECT * FROM saga.saga_step_logs`);
  await assert.rejects(archive(), { code: '23505' });
  assert.deepEqual([await idsIn('saga_states'), await idsIn('saga_states_archive')], [[id], []]);
});

test('a locked saga is archived in the next round', async () => {
  const [locked = ''] = await add('COMPLETED', { started: 90 }, 2);
  await at.db.transaction(async (tx) => {
    await tx.query(sql`SELECT 1 FROM saga.saga_states WHERE id = ${locked} FOR UPDATE`);
    assert.equal((await archive()).archived, 1);
  });
  assert.equal((await archive()).archived, 1);
});

test('concurrent rounds archive each saga once', async () => {
  await add('COMPLETED', { started: 90 }, 60);
  const rounds = await Promise.all([1, 2, 3].map(() => archive({ batchSize: 10 })));
  assert.equal(
    rounds.reduce((sum, { archived = 0 }) => sum + archived, 0),
    60,
  );
  assert.equal((await idsIn('saga_states_archive')).length, 60);
});

test('archived sagas are purged with their log after the archive retention', async () => {
  const ids = await add('COMPLETED', { started: 900 }, 5);
  await archive();
  const [kept = '', ...gone] = ids;
  await at.db.query(sql`
    UPDATE saga.saga_states_archive SET archived_at = now() - interval '401 days' WHERE id = ANY(${gone}::uuid[])`);
  assert.deepEqual(await archive({ batchSize: 2 }), { archived: 0, purged: 4, startKeys: 0 });
  assert.deepEqual(
    [await idsIn('saga_states_archive'), await idsIn('saga_step_logs_archive')],
    [[kept], [kept]],
  );
});

test('a start key is deleted when it has expired and its saga is archived', async () => {
  const [running = ''] = await add('RUNNING', { started: 90 });
  const [ended = ''] = await add('COMPLETED', { started: 90, changed: 1 });
  const [archived = ''] = await add('COMPLETED', { started: 90 });
  const gone = '00000000-0000-4000-8000-000000000000';
  const key = (name: string, sagaId: string, days: number) =>
    at.db.query(sql`
      INSERT INTO saga.saga_start_keys (workflow_name, key, digest, saga_id, expires_at)
      VALUES ('order', ${name}, 'd', ${sagaId}, now() + ${days} * interval '1 day')`);
  await key('running', running, -1);
  await key('ended', ended, -1);
  await key('archived', archived, -1);
  await key('gone', gone, -1);
  await key('gone too', gone, -1);
  await key('young', gone, 1);
  assert.deepEqual(await archive({ batchSize: 1 }), { archived: 1, purged: 0, startKeys: 3 });
  const keys = await at.db.query<{ key: string }>(sql`SELECT key FROM saga.saga_start_keys ORDER BY key`);
  assert.deepEqual(
    keys.map((row) => row.key),
    ['ended', 'running', 'young'],
  );
});

test('nothing is archived after the lease is lost', async () => {
  await add('COMPLETED', { started: 90 }, 3);
  assert.deepEqual(await archive({}, AbortSignal.abort()), {});
  assert.equal((await idsIn('saga_states')).length, 3);
});

test('the archive has the columns of what it archives', async () => {
  for (const table of ['saga_states', 'saga_step_logs']) {
    const columns = (name: string) =>
      at.db.query(sql`
        SELECT column_name, data_type FROM information_schema.columns
        WHERE table_schema = 'saga' AND table_name = ${name}
          -- The phase follows from the rest.
          AND column_name NOT IN ('archived_at', 'phase')
        ORDER BY 1`);
    assert.deepEqual(await columns(`${table}_archive`), await columns(table));
  }
});
