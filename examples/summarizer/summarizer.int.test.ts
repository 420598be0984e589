import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { onceAborted } from '../../src/kernel/clock.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { startTestSystem, type TestSystem } from '../../tests/support/start-system.ts';
import { turnMs } from './newsroom.ts';
import { learnsAfterMs, openSummarizer, type Summarizer } from './summarizer.ts';

/** The whole demo against the whole system, on a clock that the test turns. */

let system: TestSystem;
let summarizer: Summarizer;
let running: Promise<void>;
const stopping = new AbortController();
const learning = Promise.withResolvers<void>();
const learned = Promise.withResolvers<void>();
let deadJobId: string | undefined;

/** Turns go one right after another, until there are enough for a look at the queue when somebody has died. */
let turns = 0;

async function sleepInTest(ms: number, signal: AbortSignal): Promise<void> {
  const until = (promise: Promise<unknown>): Promise<unknown> => Promise.race([promise, onceAborted(signal)]);
  if (ms === learnsAfterMs) return void (await until(learning.promise));
  if (ms !== turnMs) return onceAborted(signal);
  turns += 1;
  if (turns < 60) return;
  await until(new Promise((resolve) => setTimeout(resolve, 50)));
}

before(async () => {
  summarizer = await openSummarizer({ readMs: 5 });
  const { summarize } = summarizer.queues;
  system = await startTestSystem({
    env: {
      JOBS_QUEUES: JSON.stringify({
        summarize: { ...summarize, timeout_ms: 500, backoff: { initial_ms: 20, max_ms: 80 } },
      }),
    },
  });
  running = summarizer.run({
    redriveUrl: system.url,
    signal: stopping.signal,
    seed: 'any',
    onDead: (jobId) => void (deadJobId = jobId),
    onLearned: learned.resolve,
    sleep: sleepInTest,
  });
});

after(async () => {
  stopping.abort();
  await running;
  await system.drop();
  await summarizer.close();
});

type Row = Readonly<{ status: string; retry_count: number; error_message: string | null; result: unknown }>;

async function jobsLike(article: string): Promise<readonly Row[]> {
  return system.db.query<Row>(sql`
    SELECT status, retry_count, error_message, result FROM jobs.summarize_job_queue
    WHERE article_id LIKE ${`${article}%`}`);
}

test('the demo shows summaries, retries and dead letters, and the dead ones come back', async () => {
  await eventually(() => assert.match(deadJobId ?? '', /^[\da-f-]{36}$/), { withinMs: 60_000 });
  const news = await eventually(
    async () => {
      const rows = await jobsLike('news');
      assert.ok(rows.filter(({ status }) => status === 'completed').length >= 20);
      assert.ok(rows.some(({ status, retry_count: count }) => status === 'completed' && count === 1));
      return rows;
    },
    { withinMs: 60_000 },
  );
  const summary = news.find(({ status }) => status === 'completed')?.result as { summary: string };
  assert.match(summary.summary, /\.$/);
  assert.ok(news.every(({ status }) => status !== 'dead_letter'));
  await eventually(async () => {
    const [withdrawn] = await jobsLike('withdrawn');
    assert.deepEqual([withdrawn?.status, withdrawn?.retry_count], ['dead_letter', 1]);
    const long = (await jobsLike('long-read')).find(({ status }) => status === 'dead_letter');
    assert.deepEqual([long?.retry_count, long?.error_message], [3, 'timed out after 500 ms']);
  });

  learning.resolve();
  await learned.promise;
  const answer = await system.api.post('/api/v1/jobs/requeue', { queue: 'summarize', error: 'timed out' });
  assert.equal(answer.status, 200, answer.text);
  await eventually(
    async () => assert.ok((await jobsLike('long-read')).some(({ status }) => status === 'completed')),
    { withinMs: 60_000 },
  );
});
