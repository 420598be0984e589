import type { Database } from '../../src/platform/postgres/database.ts';
import { sql, Sql } from '../../src/platform/postgres/sql.ts';
import { openJobsScene, type JobsScene } from '../chaos/support/jobs-scene.ts';
import type { RestartablePostgres } from '../chaos/support/restartable-postgres.ts';
import { startReplica } from '../chaos/support/start-replica.ts';
import { until } from '../chaos/support/until.ts';
import type { Payload } from '../chaos/jobs-worker.ts';
import { findDeepQueueBreaches } from './deep-queue-breaches.ts';
import { createBounds } from './deep-queue-bounds.ts';
import { patiently } from './patiently.ts';

/**
 * More jobs wait in one queue than will be done for a long while. Workers do a part of them and are killed meanwhile,
 * and the database crashes once; beside it another queue with bad jobs comes to its end, and a third one is idle.
 */
export type DeepQueueOptions = Readonly<{
  postgres: RestartablePostgres;
  /** How many wait at first, and how many of them are done. */
  jobs: number;
  drained: number;
  /** How often each thing is measured, and how many times its bound it may take. */
  times: number;
  patience: number;
  withinMs: number;
  say: (line: string) => void;
}>;

const deepQueue = 'work';
const badQueue = 'other';
const idleQueue = 'idle';
const enqueuedAtOnce = 10_000;
const badJobs = 50;
const fast = { backoff: { initial_ms: 20, max_ms: 100 } };

/** What was broken; nothing, if all is well. */
export async function runDeepQueue(options: DeepQueueOptions): Promise<readonly string[]> {
  const { postgres, jobs, say } = options;
  const { db } = postgres;
  const at = await openJobsScene({ database: postgres });
  await db.query(new Sql(['CREATE TABLE accepted (job_id UUID NOT NULL)'], []));
  const server = await startReplica({
    DATABASE_URL: postgres.url,
    KAFKA_ENABLED: 'false',
    JOBS_QUEUES: JSON.stringify({ [deepQueue]: fast, [badQueue]: fast, [idleQueue]: fast }),
  });
  try {
    const deepest = await fill(db, jobs);
    say(`${jobs} jobs wait`);
    const bounds = createBounds({
      db,
      server,
      deepQueue,
      idleQueue,
      times: options.times,
      patience: options.patience,
      enqueue: (queue, count) => enqueue(db, queue, count, { act: 'ok' }),
      say,
    });
    await at.start({ QUEUES: idleQueue });
    await bounds.claims('before any is done');
    await bounds.pickUps('beside those that wait');
    await drain(at, options, async () => {
      await bounds.claims('while they are done');
      await bounds.pickUps('while they are done');
      await bounds.answers(deepest);
    });
    await bounds.claims('after a part is done');
    await untilNothingRuns(at);
    say('a part is done, and nothing runs');
    return [...bounds.breaches(), ...(await findDeepQueueBreaches(db))];
  } finally {
    await at.close();
    await server.kill();
  }
}

/** The last of them. */
async function fill(db: Database, jobs: number): Promise<string> {
  let last = '';
  for (let left = jobs; left > 0; left -= enqueuedAtOnce)
    last = (await enqueue(db, deepQueue, Math.min(left, enqueuedAtOnce), { act: 'ok' })).at(-1) ?? last;
  await enqueue(db, badQueue, badJobs, { act: 'throw' });
  await enqueue(db, badQueue, badJobs, { act: 'throw', times: 2 });
  return last;
}

/** In the transaction that adds them it is written down that they were accepted. */
async function enqueue(
  db: Database,
  queue: string,
  count: number,
  payload: Payload,
): Promise<readonly string[]> {
  const added = await db.query<{ job_id: string }>(sql`
    INSERT INTO accepted
    SELECT added.job_id FROM jobs.enqueue_many(${queue}, (
      SELECT jsonb_agg(jsonb_build_object('payload', ${JSON.stringify(payload)}::jsonb))
      FROM generate_series(1, ${count}))) AS added
    RETURNING job_id`);
  return added.map(({ job_id }) => job_id);
}

/** Two processes at a time. One dies after each third, and at the end of the second one the database crashes too. */
async function drain(
  at: JobsScene,
  { postgres, drained, withinMs, say }: DeepQueueOptions,
  inTheMiddle: () => Promise<void>,
): Promise<void> {
  const env = { QUEUES: `${deepQueue},${badQueue}` };
  const first = await at.start(env);
  const second = await at.start(env);
  const untilDone = async (count: number): Promise<void> => {
    await until(`${count} are done`, () => patiently(async () => (await countDone(at.db)) >= count), {
      withinMs,
      explain: () => `${first.log()}\n${second.log()}`,
    });
    say(`${count} are done`);
  };
  await untilDone(Math.ceil(drained / 3));
  await first.kill();
  const third = await at.start(env);
  await inTheMiddle();
  await untilDone(Math.ceil((drained * 2) / 3));
  await second.kill();
  await postgres.crash();
  await postgres.restart();
  const fourth = await at.start(env);
  await untilDone(drained);
  await until('the bad ones have come to their end', () => patiently(() => isOver(at.db, badQueue)), {
    withinMs,
  });
  await third.kill();
  await fourth.terminate();
}

async function countDone(db: Database): Promise<number> {
  const [row] = await db.query<{ count: number }>(sql`SELECT count(*)::int AS count FROM completions`);
  return row?.count ?? 0;
}

async function isOver(db: Database, queue: string): Promise<boolean> {
  const rows = await db.query(sql`
    SELECT 1 FROM jobs.job_queue WHERE queue = ${queue} AND status NOT IN ('completed', 'dead_letter') LIMIT 1`);
  return rows.length === 0;
}

/** What those who died held is taken from them when their leases are over. */
async function untilNothingRuns(at: JobsScene): Promise<void> {
  await until('nothing runs', async () => (await at.count('running')) === 0);
}
