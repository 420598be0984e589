import { availableParallelism } from 'node:os';
import { DBOS } from '@dbos-inc/dbos-sdk';
import { Client } from 'pg';
import type { Answer } from '../src/saga/domain/judge-answer.ts';
import { createPostgresWorkflows } from '../src/saga/infra/postgres-workflows.ts';
import type { SendCall } from '../src/saga/usecase/ports.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import { findRestate, installRestate, measureRestate } from './saga-restate.ts';
import { createBenchEngine, threeSteps } from './saga-support.ts';
import { openPostgres, printTable, timed, type Line } from './support.ts';

/**
 * Sagas of three steps whose participants are in this process and do nothing; no events.
 *   floor    their rows, written by the batch on the same tables: what is claimed, opened and closed, and no engine
 *   forward  all three steps are done
 *   undo     the third is refused, and the first two are undone
 *   DBOS     a workflow of three steps, as many at once
 *   Restate  the same two sagas, as many at once, as it comes and with a partition for each core; only where it is
 *            installed: npm install --no-save --ignore-scripts @restatedev/restate-server@1.7.12
 *            @restatedev/restate-sdk@1.17.2
 * Goal: forward is five times the better peer. Then the time that one saga alone takes per step: p50 under 5 ms.
 * node bench/saga-steps.ts [sagas] [at once]
 */
const count = Number(process.argv[2] ?? 10_000);
const atOnce = Number(process.argv[3] ?? 200);
const peerCount = Math.min(count, 1000);
const ground = await openPostgres();
const { url, db } = ground;

const done: Answer = { class: 'done', output: { id: 'r-1' } };
const refused: Answer = { class: 'refused', detail: 'no', isTimeout: false, isUnsent: false };

try {
  await createPostgresWorkflows(db).register(threeSteps, { isFromFile: false });
  const floor = await measureFloor();
  const forward = await drain(async () => done, 'COMPLETED');
  const undo = await drain(
    async ({ stepName, call }) => (stepName === 'ship' && call.op === 'EXECUTE' ? refused : done),
    'FAILED',
  );
  const dbos = await measureDbos();
  const restate = await measureRestateLines();
  printTable(`${count.toLocaleString('en')} sagas of three steps, ${atOnce} at once`, [
    { name: 'floor: the rows alone, by the batch', perSecond: floor },
    { name: 'ours, forward', perSecond: forward },
    { name: 'ours, two undone after a refusal', perSecond: undo },
    { name: `DBOS (${peerCount} workflows)`, perSecond: dbos },
    ...restate.forward,
    ...restate.undo,
  ]);
  if (restate.forward.length === 0)
    process.stdout.write(`  Restate: not installed; to measure it, ${installRestate}\n`);
  const best = (lines: readonly Line[]): number => Math.max(...lines.map(({ perSecond }) => perSecond));
  process.stdout.write(`  ours, forward, against DBOS: ${(forward / dbos).toFixed(1)} times (goal 5)\n`);
  if (restate.forward.length > 0)
    process.stdout.write(
      `  ours against the better Restate: forward ${(forward / best(restate.forward)).toFixed(1)} times (goal 5), ` +
        `two undone ${(undo / best(restate.undo)).toFixed(1)} times\n`,
    );
  await measureLatency();
} finally {
  await ground.stop();
}

async function empty(): Promise<void> {
  await db.query(sql`TRUNCATE saga.saga_states, saga.saga_step_logs`);
  await db.query(sql`VACUUM ANALYZE`);
  await db.query(sql`CHECKPOINT`);
}

async function drain(send: SendCall, status: string): Promise<number> {
  await empty();
  await db.query(sql`
    SELECT count(*) FROM generate_series(1, ${count}::int) AS i, saga.start_saga('bench', jsonb_build_object('i', i))`);
  const engine = createBenchEngine(db, atOnce, send);
  const seconds = await timed(async () => {
    await engine.start();
    await engine.ended(count);
  });
  await engine.stop();
  const [row] = await db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM saga.saga_states WHERE status = ${status}`);
  if (row?.count !== BigInt(count)) throw new Error(`${row?.count} of ${count} sagas are ${status}`);
  return count / seconds;
}

async function measureFloor(): Promise<number> {
  await empty();
  await db.query(sql`
    INSERT INTO saga.saga_states (id, workflow_name, status, wake_at, payload)
    SELECT gen_random_uuid(), 'bench', 'STARTED', now(), '{}' FROM generate_series(1, ${count}::int)`);
  const batch = 200;
  const claimAndRun = async (): Promise<void> => {
    for (;;) {
      const rows = await db.query<{ id: string }>(sql`
        WITH picked AS MATERIALIZED (
          SELECT id FROM saga.saga_states WHERE wake_at <= now() ORDER BY wake_at LIMIT ${batch} FOR UPDATE SKIP LOCKED)
        UPDATE saga.saga_states s SET wake_at = NULL, lease_owner = 'bench' FROM picked WHERE s.id = picked.id
        RETURNING s.id`);
      if (rows.length === 0) return;
      const ids = rows.map(({ id }) => id);
      for (let at = 0; at <= threeSteps.steps.length; at += 1) await writeStep(ids, at);
    }
  };
  return count / (await timed(() => Promise.all([claimAndRun(), claimAndRun()])));
}

/** Closes the step before, and opens this one or ends the sagas. */
async function writeStep(ids: readonly string[], at: number): Promise<void> {
  const isLast = at === threeSteps.steps.length;
  await db.query(sql`
    WITH moved AS (
      UPDATE saga.saga_states s SET current_step = ${at}, status = ${isLast ? 'COMPLETED' : 'RUNNING'},
             lease_owner = ${isLast ? null : 'bench'}
      FROM unnest((SELECT ${ids}::uuid[])) AS held (id) WHERE s.id = held.id RETURNING s.id
    ), closed AS (
      UPDATE saga.saga_step_logs l SET status = 'SUCCESS', completed_at = clock_timestamp(), response_payload = '{"id":1}'
      FROM moved WHERE l.saga_id = moved.id AND l.step_index = ${at - 1} AND l.action = 'EXECUTE' AND l.attempt = 1
    ), opened AS (
      INSERT INTO saga.saga_step_logs (saga_id, step_index, step_name, action, attempt, request_payload)
      SELECT id, ${at}, 'step', 'EXECUTE', 1, '{}' FROM moved WHERE NOT ${isLast}
    )
    SELECT count(*) FROM moved`);
}

async function measureDbos(): Promise<number> {
  const admin = new Client({ connectionString: url });
  await admin.connect();
  await admin.query('CREATE DATABASE dbos_bench');
  await admin.end();
  const target = new URL(url);
  target.pathname = '/dbos_bench';
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: target.href, logLevel: 'error' });
  const nothing = async (): Promise<{ id: string }> => ({ id: 'r-1' });
  const peerWorkflow = DBOS.registerWorkflow(
    async () => {
      for (const { name } of threeSteps.steps) await DBOS.runStep(nothing, { name });
    },
    { name: 'three-steps' },
  );
  await DBOS.launch();
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < peerCount) {
      next += 1;
      await peerWorkflow();
    }
  };
  const seconds = await timed(() => Promise.all(Array.from({ length: atOnce }, work)));
  await DBOS.shutdown();
  return peerCount / seconds;
}

async function measureRestateLines(): Promise<{ forward: Line[]; undo: Line[] }> {
  const lines = { forward: [] as Line[], undo: [] as Line[] };
  const restate = await findRestate();
  if (restate === null) return lines;
  const cores = availableParallelism();
  for (const [name, partitions] of [
    ['Restate as it comes', null],
    [`Restate, ${cores} partitions`, cores],
  ] as const) {
    const { forward, undo } = await measureRestate(restate, { count, atOnce, partitions });
    lines.forward.push({ name: `${name}, forward`, perSecond: forward });
    lines.undo.push({ name: `${name}, two undone`, perSecond: undo });
  }
  return lines;
}

/** One saga at a time: from the start to the end, by the number of steps. */
async function measureLatency(): Promise<void> {
  await empty();
  const rounds = 200;
  let onEnd = (): void => {};
  const engine = createBenchEngine(db, atOnce, async ({ stepName }) => {
    if (stepName === 'ship') setImmediate(() => onEnd());
    return done;
  });
  await engine.start();
  const times: number[] = [];
  for (let i = 0; i < rounds; i += 1) {
    const called = Promise.withResolvers<void>();
    onEnd = called.resolve;
    const begin = performance.now();
    await db.query(sql`SELECT saga.start_saga('bench', '{}'::jsonb)`);
    await called.promise;
    times.push((performance.now() - begin) / threeSteps.steps.length);
  }
  await engine.stop();
  const sorted = times.toSorted((a, b) => a - b);
  process.stdout.write(
    `  one saga at a time: p50 ${sorted[rounds / 2]?.toFixed(1)} ms a step, the start included (goal 5)\n`,
  );
}
