import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { startSummaryService, type SummaryService } from './summary-service.ts';

async function open(t: TestContext, capacity = 100, readMs = 1): Promise<SummaryService> {
  const service = await startSummaryService({ capacity, readMs });
  t.after(() => service.close());
  return service;
}

async function push(
  { url }: SummaryService,
  articleId: string,
  more: Readonly<{ attempt?: number; signal?: AbortSignal }> = {},
): Promise<Readonly<{ status: number; retryAfter: string | null; body: unknown }>> {
  const { attempt = 1, ...options } = more;
  const payload = { article_id: articleId, title: 'Trams', text: 'The trams run again. At last.' };
  const body = JSON.stringify({ job_id: 'any', queue: 'summarize', payload, attempt, epoch: 1 });
  const answer = await fetch(url, { method: 'POST', body, ...options });
  return { status: answer.status, retryAfter: answer.headers.get('retry-after'), body: await answer.json() };
}

test('an article is summarised, and one that was withdrawn is refused', async (t) => {
  const service = await open(t);
  assert.deepEqual(await push(service, 'news-1'), {
    status: 200,
    retryAfter: null,
    body: { article_id: 'news-1', summary: 'The trams run again.', words: 6 },
  });
  assert.equal((await push(service, 'withdrawn-1')).status, 404);
  const nonsense = await fetch(service.url, { method: 'POST', body: 'no JSON' });
  assert.equal(nonsense.status, 400);
});

test('a digest counts the articles since the last one', async (t) => {
  const service = await open(t);
  const digest = async (): Promise<unknown> => (await push({ ...service, url: service.digestUrl }, '')).body;
  await push(service, 'news-1');
  await push(service, 'withdrawn-1');
  assert.deepEqual([await digest(), await digest()], [{ articles: 1 }, { articles: 0 }]);
});

test('one article in seven makes it stumble, at the first attempt only', async (t) => {
  const service = await open(t);
  const statuses: number[] = [];
  for (let n = 1; n <= 14; n += 1) statuses.push((await push(service, `news-${n}`)).status);
  assert.deepEqual(
    statuses.flatMap((status, index) => (status === 500 ? [index + 1] : [])),
    [7, 14],
  );
  assert.equal((await push(service, 'news-14', { attempt: 2 })).status, 200);
});

test('above its capacity it asks for time', async (t) => {
  // Longer than a slow machine takes to open twelve connections.
  const service = await open(t, 2, 1000);
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) => push(service, `news-${n}`, { attempt: 2 })),
  );
  const later = answers.filter(({ status }) => status === 429);
  assert.ok(later.length > 0 && later.every(({ retryAfter }) => retryAfter === '1'));
  assert.ok(answers.some(({ status }) => status === 200));
});

test('long reads are never answered, until it has learned to do them', async (t) => {
  const service = await open(t);
  const hungUp = new AbortController();
  const silence = push(service, 'long-read-1', { signal: hungUp.signal }).then(
    () => 'answered',
    () => 'hung up',
  );
  assert.equal((await push(service, 'news-1')).status, 200);
  hungUp.abort();
  assert.equal(await silence, 'hung up');
  service.learnLongReads();
  assert.equal((await push(service, 'long-read-1')).status, 200);
});
