import { cpus } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { sql } from '../src/platform/postgres/sql.ts';
import { storeWorkflow } from '../src/saga/define/workflows-table.ts';
import type { SendCall } from '../src/saga/run/services/service.ts';
import { createBenchEngine, threeSteps } from './saga-support.ts';
import { openPostgres, until } from './support.ts';

/**
 * Unfinished sagas at a start, as after an outage: each waits for its second step. How long it takes until each has had
 * its next call sent, with participants that answer after 10 ms and the settings as they come, and how much memory it
 * takes. Goal: 10 s for 10 000.
 * node --expose-gc bench/saga-recovery.ts [sagas]
 */
const count = Number(process.argv[2] ?? 10_000);
const atOnce = 100;
const ground = await openPostgres();
const { db } = ground;
try {
  const hash = await storeWorkflow(db, threeSteps, { isFromFile: false });
  await db.query(sql`
    WITH begun AS (
      INSERT INTO saga.saga_states (workflow_name, current_step, status, payload, definition_hash, wake_at, step_outputs)
      SELECT 'bench', 1, 'RUNNING', jsonb_build_object('i', i), ${hash}, now(), '{"reserve": {"id": "r-1"}}'
      FROM generate_series(1, ${count}::int) AS i
      RETURNING id
    )
    INSERT INTO saga.saga_step_logs
      (saga_id, step_index, step_name, action, attempt, status, answer, response_payload, completed_at)
    SELECT id, 0, 'reserve', 'EXECUTE', 1, 'SUCCESS', 'done', '{"id": "r-1"}', now() FROM begun`);
  await db.query(sql`VACUUM ANALYZE`);
  const called = new Map<string, number>();
  const begin = performance.now();
  const send: SendCall = async ({ saga }) => {
    if (!called.has(saga.id)) called.set(saga.id, performance.now() - begin);
    await wait(10);
    return { class: 'done', output: { id: 'r-1' } };
  };
  const engine = createBenchEngine(db, { atOnce, send });
  let mostMb = 0;
  const watching = setInterval(() => {
    mostMb = Math.max(mostMb, process.memoryUsage().rss / 1024 / 1024);
  }, 100);
  const beforeMb = process.memoryUsage().rss / 1024 / 1024;
  await engine.start();
  await until(async () => called.size === count);
  const times = [...called.values()].toSorted((a, b) => a - b);
  await until(async () => {
    const [row] = await db.query<{ left: bigint }>(sql`
      SELECT count(*) AS left FROM saga.saga_states WHERE status <> 'COMPLETED'`);
    return row?.left === 0n;
  });
  const doneMs = performance.now() - begin;
  clearInterval(watching);
  await engine.stop();
  const at = (part: number): string =>
    ((times[Math.floor((times.length - 1) * part)] ?? NaN) / 1000).toFixed(1);
  process.stdout.write(
    `\n${count.toLocaleString('en')} unfinished sagas at a start (Node ${process.version}, ${cpus().length} cores)\n` +
      `  the next call of a saga: p50 ${at(0.5)} s, the last ${at(1)} s (goal 10); all ended after ${(doneMs / 1000).toFixed(1)} s\n` +
      `  resident memory: ${beforeMb.toFixed(0)} MB before, ${mostMb.toFixed(0)} MB at most\n`,
  );
} finally {
  await ground.stop();
}
