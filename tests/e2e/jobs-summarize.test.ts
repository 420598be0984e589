import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createLogger } from '../../src/platform/telemetry/logger.ts';
import { eventually } from '../support/eventually.ts';
import { fastQueue, startJobsSystem, type JobsSystem } from '../support/jobs-system.ts';
import { startPartner, type Partner } from '../support/partner.ts';

/**
 * The story that the jobs began with: a summariser that never answers for some articles. They were asked for again and
 * again, and everything behind them waited.
 */
type Newsroom = JobsSystem &
  Readonly<{
    summarizer: Partner;
    summarize(article: string): Promise<string>;
    /** From now on it answers for every article. */
    mend(): void;
    requestsOf(jobId: string): number;
    deadLines(): readonly Readonly<Record<string, unknown>>[];
  }>;

async function openNewsroom(t: TestContext, timeoutMs: number): Promise<Newsroom> {
  let isMended = false;
  const summarizer = await startPartner({
    honoursKeys: false,
    script: ({ body }) => {
      const { article_id: article } = (JSON.parse(body) as { payload: { article_id: string } }).payload;
      return article.startsWith('long') && !isMended ? { act: 'hang', effect: false } : { act: 'ok' };
    },
  });
  t.after(() => summarizer.stop());
  const lines: string[] = [];
  const jobs = await startJobsSystem({
    logger: createLogger({
      service: 'redrive',
      version: '0',
      environment: 'test',
      level: 'info',
      stream: { write: (line) => void lines.push(line) },
    }),
    queues: {
      summarize: {
        ...fastQueue,
        max_retries: 3,
        timeout_ms: timeoutMs,
        concurrency: 4,
        target: { type: 'http', url: summarizer.url },
      },
    },
  });
  t.after(() => jobs.drop());
  return {
    ...jobs,
    summarizer,
    summarize: (article) => jobs.job({ queue: 'summarize', payload: { article_id: article } }),
    mend: () => void (isMended = true),
    requestsOf: (jobId) => summarizer.requests.filter(({ key }) => key === jobId).length,
    deadLines: () =>
      lines
        .filter((line) => line.includes('dead_letter'))
        .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>),
  };
}

type Article = Readonly<{
  article_id: string;
  status: string;
  retry_count: number;
  max_retries: number;
  error_message: string | null;
  created_at: Date;
}>;

/** The seed's statements as they stand, with its table found by its bare name. */
async function asInTheSeed<T>(db: Database, work: (tx: Pick<Database, 'query'>) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.query(sql`SET LOCAL search_path = jobs`);
    return work(tx);
  });
}

const deadArticles = (db: Database): Promise<readonly Article[]> =>
  asInTheSeed(db, (tx) =>
    tx.query<Article>(sql`
      SELECT article_id, status, retry_count, max_retries, error_message, created_at
      FROM summarize_job_queue
      WHERE status = 'dead_letter'
      ORDER BY created_at DESC`),
  );

test('articles that always time out are skipped for good, the others are not slowed, and a person can try again', async (t) => {
  const timeoutMs = 1500;
  const newsroom = await openNewsroom(t, timeoutMs);
  const { summarize, become, becomes, requestsOf, system } = newsroom;
  const bad = [await summarize('long-1'), await summarize('long-2')];
  await eventually(() => bad.forEach((jobId) => assert.equal(requestsOf(jobId), 1)));
  const good = await Promise.all(Array.from({ length: 40 }, (_, n) => summarize(`article-${n}`)));

  const summaries = await become(good, 'completed');
  for (const row of summaries) assert.deepEqual([row.retry_count, row.deferrals], [0, 0]);
  assert.deepEqual(
    await deadArticles(system.db),
    [],
    'all good ones are done before the first bad one is given up',
  );

  const dead = await become(bad, 'dead_letter');
  for (const row of dead) {
    assert.deepEqual([row.retry_count, row.max_retries, requestsOf(row.job_id)], [3, 3, 3]);
    assert.equal(row.error_message, `timed out after ${timeoutMs} ms`);
    assert.notEqual(row.completed_at, null);
  }
  await eventually(() =>
    assert.deepEqual(new Set(newsroom.deadLines().map((line) => line['job_id'])), new Set(bad)),
  );
  const [queue] = await system.db.query<{ throttle: unknown }>(sql`
    SELECT throttle FROM jobs.queues WHERE queue = 'summarize'`);
  assert.equal(queue?.throttle, null, 'a timeout slows nobody');

  const found = await deadArticles(system.db);
  assert.deepEqual(
    found.map(({ article_id: article, retry_count: count }) => [article, count]),
    [
      ['long-2', 3],
      ['long-1', 3],
    ],
  );

  newsroom.mend();
  await asInTheSeed(system.db, (tx) =>
    tx.query(sql`
      UPDATE summarize_job_queue
      SET status = 'pending', retry_count = 0
      WHERE article_id = 'long-1'`),
  );
  const again = await becomes(bad[0] ?? '', 'completed');
  assert.deepEqual([again.retry_count, again.error_message, again.resolution], [0, null, null]);
  assert.deepEqual(
    (await deadArticles(system.db)).map(({ article_id: article }) => article),
    ['long-2'],
  );
});

test('an article that is requeued by hand while it is still bad has a new budget, and ends the same way', async (t) => {
  const { summarize, becomes, requestsOf, system } = await openNewsroom(t, 300);
  const jobId = await summarize('long-1');
  await becomes(jobId, 'dead_letter');
  await asInTheSeed(system.db, (tx) =>
    tx.query(sql`
      UPDATE summarize_job_queue SET status = 'pending', retry_count = 0 WHERE article_id = 'long-1'`),
  );
  await eventually(async () => {
    assert.equal(requestsOf(jobId), 6);
    await becomes(jobId, 'dead_letter', 0);
  });
});
