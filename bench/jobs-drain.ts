import type { Database } from '../src/platform/postgres/database.ts';
import { sql } from '../src/platform/postgres/sql.ts';
import {
  bossPaces,
  countTo,
  drainFloor,
  fillFloor,
  graphileTask,
  migrateGraphile,
  openBoss,
  startBoss,
  startGraphile,
  startOurs,
  type Running,
} from './jobs-support.ts';
import { openPostgres, printTable, timed, type Line } from './support.ts';

/**
 * Drains no-op jobs in one process: the floor (the bare claim and update), both peers as their own documents tune
 * them, and ours with rows removed at their end (as graphile-worker does) and with rows kept (as pg-boss does).
 * Goals: 1.2 times the better peer with rows removed, 1.0 times with rows kept.
 * node bench/jobs-drain.ts [jobs] [rounds]
 */
const count = Number(process.argv[2] ?? 100_000);
const rounds = Number(process.argv[3] ?? 3);
const ground = await openPostgres();
const { url, db } = ground;
const queue = 'bench';
try {
  await migrateGraphile(url);
  const boss = await openBoss(url, queue, { notifies: false });
  const measured = new Map<string, number[]>();
  const measure = async (name: string, run: () => Promise<number>): Promise<void> => {
    await db.query(sql`VACUUM ANALYZE`);
    await db.query(sql`CHECKPOINT`);
    measured.set(name, [...(measured.get(name) ?? []), count / (await run())]);
  };
  for (let round = 0; round < rounds; round += 1) {
    await measure('floor: the bare claim and update', async () => {
      await fillFloor(db, count);
      return timed(() => drainFloor(url, count));
    });
    await measure('graphile-worker, tuned', () =>
      drain(fillGraphile, (handler) => startGraphile(url, handler)),
    );
    for (const pace of bossPaces)
      await measure(`pg-boss, ${pace.localConcurrency} workers, batches of ${pace.batchSize}`, () =>
        drain(
          () => fillBoss(db),
          (handler) => startBoss(boss, queue, { handler, ...pace }),
        ),
      );
    for (const isKept of [false, true])
      await measure(isKept ? 'ours, rows kept' : 'ours, rows removed', () =>
        drain(
          () => fillOurs(isKept),
          (handler) => startOurs(db, queue, handler),
        ),
      );
  }
  const lines = [...measured].map(([name, all]) => ({ name, perSecond: middle(all) }));
  printTable(`Drain of ${count.toLocaleString('en')} no-op jobs, the middle of ${rounds} rounds`, lines);
  printRatios(lines);
  await boss.stop({ graceful: false });
} finally {
  await ground.stop();
}

/** From the start of the worker to the end of the last handler, and until nothing is left to be written. */
async function drain(
  fill: () => Promise<void>,
  start: (handler: () => void) => Promise<Running>,
): Promise<number> {
  await fill();
  await db.query(sql`VACUUM ANALYZE`);
  const counter = countTo(count);
  return timed(async () => {
    const running = await start(counter.handler);
    await counter.all;
    await running.stop();
  });
}

async function fillGraphile(): Promise<void> {
  await db.query(sql`
    SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(
      SELECT ROW (${graphileTask}, jsonb_build_object('id', i), NULL, NULL, NULL, NULL, NULL, NULL)::graphile_worker.job_spec
      FROM generate_series(1, ${count}::int) AS i))`);
}

async function fillBoss(to: Database): Promise<void> {
  await to.query(sql`TRUNCATE pgboss.job`);
  await to.query(sql`
    INSERT INTO pgboss.job (name, data) SELECT ${queue}, jsonb_build_object('id', i)
    FROM generate_series(1, ${count}::int) AS i`);
}

async function fillOurs(isKept: boolean): Promise<void> {
  await db.query(sql`TRUNCATE jobs.job_queue`);
  await db.query(sql`
    INSERT INTO jobs.queues (queue, keep_completed) VALUES (${queue}, ${isKept})
    ON CONFLICT (queue) DO UPDATE SET keep_completed = EXCLUDED.keep_completed`);
  await db.query(sql`
    SELECT count(*) FROM jobs.enqueue_many(${queue}, (
      SELECT jsonb_agg(jsonb_build_object('payload', jsonb_build_object('id', i)))
      FROM generate_series(1, ${count}::int) AS i))`);
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

function printRatios(lines: readonly Line[]): void {
  const of = (name: string): number => lines.find((line) => line.name === name)?.perSecond ?? NaN;
  const peers = lines.filter(({ name }) => name.startsWith('graphile') || name.startsWith('pg-boss'));
  const best = Math.max(...peers.map(({ perSecond }) => perSecond));
  for (const [name, goal] of [
    ['ours, rows removed', 1.2],
    ['ours, rows kept', 1],
  ] as const)
    process.stdout.write(
      `  ${name}: ${(of(name) / best).toFixed(2)} times the better peer (goal ${goal.toFixed(1)})\n`,
    );
}
