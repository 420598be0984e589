import assert from 'node:assert/strict';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { sql, Sql } from '../../../src/platform/postgres/sql.ts';
import { createTestDatabase } from '../../support/database.ts';
import type { Payload } from '../jobs-worker.ts';
import { startWorker, type WorkerProcess } from './start-worker.ts';
import { until } from './until.ts';

/** Jobs in a database, processes that handle them, and the books that are kept on both. */
export type JobsScene = Readonly<{
  url: string;
  db: Database;
  start(env?: Readonly<Record<string, string>>, nodeOptions?: readonly string[]): Promise<WorkerProcess>;
  /** Their ids, in the order of the payloads. */
  enqueue(payloads: readonly Payload[], queue?: string): Promise<readonly string[]>;
  rows(status?: string): Promise<readonly JobRow[]>;
  row(jobId: string): Promise<JobRow>;
  count(status: string): Promise<number>;
  /** When every job is completed or dead. */
  atRest(withinMs?: number): Promise<void>;
  /** Fails where a job was lost, completed twice, or beyond its budget; else all of them. */
  check(): Promise<readonly JobRow[]>;
  close(): Promise<void>;
}>;

export type JobRow = Readonly<{
  jobId: string;
  status: string;
  retryCount: number;
  maxRetries: number;
  deferrals: number;
  error: string | null;
  /** How often a handler began and ended, and how often the row became completed. */
  started: number;
  done: number;
  completions: number;
  /** Failures that were written down. */
  failures: number;
}>;

export const queueName = 'work';

/** What handlers did, and every time that a job became completed, as the database saw it. */
const books = `
  CREATE TABLE ledger (job_id UUID NOT NULL, what TEXT NOT NULL, pid INT NOT NULL);
  CREATE TABLE completions (job_id UUID NOT NULL);
  CREATE FUNCTION note_completion() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO public.completions VALUES (NEW.job_id);
    RETURN NULL;
  END $$;
  CREATE TRIGGER note_completion AFTER UPDATE ON jobs.job_queue
    FOR EACH ROW WHEN (NEW.status = 'completed') EXECUTE FUNCTION note_completion();
  INSERT INTO jobs.queues (queue, backoff_initial_ms, backoff_max_ms, backoff_jitter)
  VALUES ('work', 20, 100, 0), ('other', 20, 100, 0)`;

export async function openJobsScene(
  options: Readonly<{ database?: Readonly<{ url: string; db: Database }> }> = {},
): Promise<JobsScene> {
  const own = options.database === undefined ? await createTestDatabase() : null;
  const { url, db } = options.database ?? own ?? assert.fail();
  await db.query(new Sql([books], []));
  const workers: WorkerProcess[] = [];
  const accepted: string[] = [];
  const rows: JobsScene['rows'] = (status) => readRows(db, status ?? null);
  const count: JobsScene['count'] = async (status) => {
    const [row] = await db.query<{ count: number }>(sql`
      SELECT count(*)::int AS count FROM jobs.job_queue WHERE status = ${status}`);
    return row?.count ?? 0;
  };
  return {
    url,
    db,
    rows,
    count,
    async row(jobId) {
      return (await rows()).find((row) => row.jobId === jobId) ?? assert.fail(`${jobId} is lost`);
    },
    async start(env = {}, nodeOptions = []) {
      const worker = await startWorker({ DATABASE_URL: url, QUEUES: queueName, ...env }, nodeOptions);
      workers.push(worker);
      return worker;
    },
    async enqueue(payloads, queue = queueName) {
      const elements = JSON.stringify(payloads.map((payload) => ({ payload })));
      const added = await db.query<{ job_id: string }>(sql`
        SELECT job_id FROM jobs.enqueue_many(${queue}, ${elements}::jsonb)`);
      const ids = added.map(({ job_id }) => job_id);
      accepted.push(...ids);
      return ids;
    },
    async atRest(withinMs = 120_000) {
      let open = 0;
      await until(
        'every job has come to its end',
        async () => {
          open = await countOpen(db);
          return open === 0 || null;
        },
        { withinMs, explain: () => `${open} have not\n${workers.map(({ log }) => log()).join('--\n')}` },
      );
    },
    async check() {
      const all = await rows();
      assert.deepEqual(new Set(all.map(({ jobId }) => jobId)), new Set(accepted), 'no job is lost');
      assert.deepEqual(all.flatMap(breachesOf), []);
      return all;
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.kill()));
      await own?.drop();
    },
  };
}

async function countOpen(db: Database): Promise<number> {
  const [row] = await db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM jobs.job_queue WHERE status NOT IN ('completed', 'dead_letter')`);
  return row?.count ?? 0;
}

async function readRows(db: Database, status: string | null): Promise<readonly JobRow[]> {
  return db.query<JobRow>(sql`
    SELECT j.job_id AS "jobId", j.status, j.retry_count AS "retryCount", j.max_retries AS "maxRetries", j.deferrals,
           j.error_message AS error,
           (SELECT count(*)::int FROM ledger l WHERE l.job_id = j.job_id AND l.what = 'started') AS started,
           (SELECT count(*)::int FROM ledger l WHERE l.job_id = j.job_id AND l.what = 'done') AS done,
           (SELECT count(*)::int FROM completions c WHERE c.job_id = j.job_id) AS completions,
           (SELECT count(*)::int FROM jobs.job_attempts a WHERE a.job_id = j.job_id) AS failures
    FROM jobs.job_queue j WHERE ${status}::text IS NULL OR j.status = ${status} ORDER BY j.job_id`);
}

/** What must never be, whatever happened. */
function breachesOf(row: JobRow): readonly string[] {
  const isCompleted = row.status === 'completed';
  const attempts = row.retryCount + (isCompleted ? 1 : 0);
  const rules: readonly (readonly [isKept: boolean, rule: string])[] = [
    [isCompleted || row.status === 'dead_letter', 'it has come to an end'],
    [row.completions === (isCompleted ? 1 : 0), 'it became completed once, or never'],
    [!isCompleted || row.done >= 1, 'what is completed was done'],
    [row.retryCount <= row.maxRetries, 'it stays within its budget'],
    [
      row.status !== 'dead_letter' || row.retryCount === row.maxRetries,
      'it is dead when the budget is spent',
    ],
    [row.failures === row.retryCount, 'each failure is written down once'],
    [row.started <= attempts, 'no attempt is free'],
  ];
  return rules.filter(([isKept]) => !isKept).map(([, rule]) => `${rule}: ${JSON.stringify(row)}`);
}

export const good = (count: number, ms = 0): readonly Payload[] =>
  Array.from({ length: count }, () => ({ act: 'ok', ms }));
