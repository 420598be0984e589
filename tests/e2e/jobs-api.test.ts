import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, sortedStatuses } from '../support/api-client.ts';
import {
  claimJob,
  notRetryable,
  root,
  startJobsSystem,
  storedJob,
  type JobsSystem,
} from '../support/jobs-system.ts';

let jobs: JobsSystem;
before(async () => {
  jobs = await startJobsSystem({ queues: { strict: { max_retries: 7 } } });
});
after(() => jobs.drop());

type Enqueued = Readonly<{ job_id: string; status: string; duplicate: boolean }>;
type ShownJob = Readonly<{
  job_id: string;
  queue: string;
  status: string;
  payload: unknown;
  run_at: string | null;
  created_at: string;
  needs_attention: boolean;
  resolution: string | null;
  payload_omitted?: true;
  lease: Readonly<{ owner: string; until: string; epoch: number }> | null;
  attempts: readonly Readonly<{ retry_count: number; status_to: string; error: string; epoch: number }>[];
  actions: readonly Readonly<{ action: string; actor: string; reason: string | null }>[];
}>;
type Pagination = Readonly<{ total_count: number; has_next: boolean; next_cursor?: string | null }>;
type JobList = Readonly<{ jobs: readonly ShownJob[]; pagination: Pagination }>;
type DeadList = JobList &
  Readonly<{
    groups: readonly Readonly<{
      queue: string;
      fingerprint: string | null;
      error: string | null;
      count: number;
    }>[];
  }>;

const api = () => jobs.system.api;
const enqueue = (body: unknown, headers = {}) => api().post<Enqueued>(root, body, headers);
const shown = async (jobId: string) => (await api().get<ShownJob>(`${root}/${jobId}`)).body;
/** As lists show them: two ids of one millisecond are in no order of time. */
const newestFirst = (ids: readonly string[]): readonly string[] => ids.toSorted().toReversed();
const idsOf = (list: JobList): readonly string[] => list.jobs.map((job) => job.job_id);

describe('enqueuing', () => {
  test('a job is taken with 202 and waits, with what its queue says for the rest', async () => {
    const answer = await enqueue({ queue: 'strict', payload: { to: 'ann' } });
    assert.equal(answer.status, 202, answer.text);
    assert.deepEqual(answer.body, { job_id: answer.body.job_id, status: 'pending', duplicate: false });
    const row = await storedJob(jobs.system.db, answer.body.job_id);
    assert.deepEqual(row.payload, { to: 'ann' });
    assert.deepEqual([row.max_retries, row.priority, row.dedupe_key, row.trace], [7, 0, null, null]);
  });

  test('all that it may say is kept, and the trace of the request', async () => {
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const { body } = await enqueue(
      {
        queue: 'later',
        payload: [1, null, 'é'],
        dedupe_key: 'k1',
        priority: 100,
        run_at: '2126-02-20T10:30:00.000+00:00',
        max_retries: 1000,
      },
      { traceparent: trace },
    );
    const row = await storedJob(jobs.system.db, body.job_id);
    assert.deepEqual(
      [row.queue, row.payload, row.dedupe_key, row.priority, row.max_retries, row.trace],
      ['later', [1, null, 'é'], 'k1', 100, 1000, trace],
    );
    assert.equal(row.run_at.toISOString(), '2126-02-20T10:30:00.000Z');
    assert.equal((await shown(body.job_id)).run_at, '2126-02-20T10:30:00.000+00:00');
  });

  test('a key that is taken gets the job that has it, with 200, until that job is over', async () => {
    const body = { queue: 'mail', payload: {}, dedupe_key: 'once' };
    const first = await enqueue(body);
    const again = await enqueue({ ...body, payload: 'other' });
    assert.equal(again.status, 200, again.text);
    assert.deepEqual(again.body, { job_id: first.body.job_id, status: 'pending', duplicate: true });
    assert.equal((await enqueue({ ...body, queue: 'other-queue' })).status, 202);

    await jobs.attempt(first.body.job_id, notRetryable('no'));
    const next = await enqueue(body);
    assert.equal(next.status, 202);
    assert.notEqual(next.body.job_id, first.body.job_id);
  });

  test('of ten at once with one key, one is added', async () => {
    const body = { queue: 'mail', payload: {}, dedupe_key: 'at-once' };
    const answers = await Promise.all(Array.from({ length: 10 }, () => enqueue(body)));
    assert.deepEqual(sortedStatuses(answers), [...Array.from({ length: 9 }, () => 200), 202]);
    assert.equal(new Set(answers.map((answer) => answer.body.job_id)).size, 1);
  });

  test('a dedupe key that an open transaction holds is answered 409 in time, and names the cause', async () => {
    const body = { queue: 'mail', payload: {}, dedupe_key: 'held' };
    await jobs.system.db.transaction(async (tx) => {
      await tx.query(sql`SELECT jobs.enqueue('mail', '{}', 'held')`);
      const begin = performance.now();
      const answer = await api().post(root, body);
      assertError(answer, 409, 'SYS_JOBS_BUSY');
      assert.match(answer.text, /another open transaction adds a job with this dedupe key/);
      assert.equal(answer.headers.get('retry-after'), '1');
      // Half a second of patience, and a busy machine.
      assert.ok(performance.now() - begin < 5000);
      assert.equal((await api().post(root, { ...body, dedupe_key: 'free' })).status, 202);
    });
    assert.equal((await api().post(root, body)).status, 200);
  });

  test('a duplicate is not counted as enqueued', async () => {
    const body = { queue: 'counted', payload: {}, dedupe_key: 'x' };
    for (const status of [202, 200, 200]) assert.equal((await enqueue(body)).status, status);
    const { text } = await api().get('/metrics');
    assert.match(text, /jobs_enqueued_total\{queue="counted"\} 1\n/);
  });

  test('a payload as large as a body may be is kept, and only a list leaves it out', async () => {
    const payload = 'x'.repeat(1024 * 1024 - 100);
    const { body, status } = await enqueue({ queue: 'large', payload });
    assert.equal(status, 202);
    assert.equal((await shown(body.job_id)).payload, payload);
    const list = await api().get<JobList>(`${root}?queue=large`);
    assert.deepEqual([list.body.jobs[0]?.payload, list.body.jobs[0]?.payload_omitted], [null, true]);
    assertError(
      await enqueue({ queue: 'large', payload: `${payload}${payload}` }),
      413,
      'SYS_JOBS_TOO_LARGE',
    );
  });

  test('any JSON is a payload', async () => {
    for (const payload of [null, false, 0, '', [], {}, 1e-300, { '': { constructor: 'x' } }]) {
      const { body, status } = await enqueue({ queue: 'any', payload });
      assert.equal(status, 202);
      assert.deepEqual((await shown(body.job_id)).payload, payload);
    }
  });
});

describe('one job', () => {
  test('it tells its failed attempts and what people did', async () => {
    const jobId = await jobs.job({ queue: 'told', max_retries: 2 });
    for (const error of ['first', 'second'])
      await jobs.attempt(jobId, { outcome: 'failed', error, isRetryable: true, retryAfterMs: null });
    await jobs.system.db.query(sql`
      INSERT INTO jobs.job_actions (job_id, action, status_from, status_to, actor, reason)
      VALUES (${jobId}, 'discard', 'dead_letter', 'dead_letter', 'alice', 'seen')`);
    const job = await shown(jobId);
    assert.deepEqual(
      job.attempts.map(({ retry_count: count, status_to: to, error }) => [count, to, error]),
      [
        [1, 'failed', 'first'],
        [2, 'dead_letter', 'second'],
      ],
    );
    assert.deepEqual(
      job.actions.map(({ action, actor, reason }) => [action, actor, reason]),
      [['discard', 'alice', 'seen']],
    );
    assert.deepEqual([job.status, job.needs_attention, job.run_at], ['dead_letter', true, null]);
  });

  test('while it runs it says who holds it', async () => {
    const jobId = await jobs.job({ queue: 'held' });
    assert.equal((await shown(jobId)).lease, null);
    const claimed = await claimJob(jobs.system.db, jobId);
    const { lease, status } = await shown(jobId);
    assert.equal(status, 'running');
    assert.deepEqual([lease?.owner, lease?.epoch], ['worker-1', Number(claimed.lease.epoch)]);
  });

  test('one that is not there is 404, also with the id in capitals', async () => {
    const id = '0195F3E0-7A4B-7C3D-8E2F-1A2B3C4D5E6F';
    assertError(await api().get(`${root}/${id}`), 404, 'SYS_JOBS_NOT_FOUND');
    const jobId = await jobs.job();
    assert.equal((await shown(jobId.toUpperCase())).job_id, jobId);
  });

  test('what only SQL can write down is shown all the same', async () => {
    const jobId = await jobs.job({ queue: 'odd' });
    await jobs.system.db.query(sql`
      UPDATE jobs.job_queue SET run_at = 'infinity', sort_at = 'infinity', created_at = '-infinity',
        payload = '{"n": 123456789012345678901234567890}' WHERE job_id = ${jobId}`);
    const answer = await api().get<ShownJob>(`${root}/${jobId}`);
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual([answer.body.run_at, answer.body.created_at], [null, null]);
    assert.match(answer.text, /123456789012345678901234567890/);
    assert.equal((await api().get(`${root}?queue=odd`)).status, 200);
    assert.equal((await api().get(`${root}/queues`)).status, 200);
  });
});

describe('the list', () => {
  test('goes by number and by cursor, newest first', async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i += 1) ids.push(await jobs.job({ queue: 'paged' }));
    const made = newestFirst(ids);
    const get = async (query: string) => (await api().get<JobList>(`${root}?queue=paged&${query}`)).body;

    const second = await get('page=2&page_size=2');
    assert.deepEqual(idsOf(second), made.slice(2, 4));
    assert.deepEqual(second.pagination, { total_count: 5, page: 2, page_size: 2, has_next: true });
    assert.equal((await get('page=3&page_size=2')).pagination.has_next, false);
    assert.deepEqual((await get('page=9&page_size=2')).jobs, []);

    const seen: string[] = [];
    for (let cursor: string | null | undefined = ''; typeof cursor === 'string';) {
      const page: JobList = await get(`cursor=${cursor}&page_size=2`);
      seen.push(...idsOf(page));
      assert.equal(page.pagination.has_next, typeof page.pagination.next_cursor === 'string');
      cursor = page.pagination.next_cursor;
    }
    assert.deepEqual(seen, made);
  });

  test('filters by queue, status, dedupe key and time of creation', async () => {
    const pending = await jobs.job({ queue: 'filtered', dedupe_key: 'p' });
    const dead = await jobs.deadJob('x', { queue: 'filtered' });
    const running = await jobs.job({ queue: 'filtered' });
    await claimJob(jobs.system.db, running);
    const done = await jobs.job({ queue: 'filtered' });
    await jobs.attempt(done, { outcome: 'completed', result: '{"ok": true}' });
    const failed = await jobs.job({ queue: 'filtered' });
    await jobs.attempt(failed, { outcome: 'failed', error: 'e', isRetryable: true, retryAfterMs: 3_600_000 });

    const get = async (query: string) => {
      const answer = await api().get<JobList>(`${root}?${query}`);
      assert.equal(answer.status, 200, answer.text);
      return idsOf(answer.body);
    };
    const all = newestFirst([pending, dead, running, done, failed]);
    assert.deepEqual(await get('queue=filtered'), all);
    const byStatus = { pending, running, completed: done, failed, dead_letter: dead };
    for (const [status, id] of Object.entries(byStatus)) {
      assert.deepEqual(await get(`queue=filtered&status=${status}`), [id]);
      assert.ok((await get(`status=${status}&page_size=100`)).includes(id), status);
    }
    assert.deepEqual(await get('queue=filtered&dedupe_key=p'), [pending]);
    assert.deepEqual(await get('queue=filtered&dedupe_key=p&status=pending'), [pending]);
    assert.deepEqual(await get('queue=filtered&dedupe_key=p&status=running'), []);

    const { created_at: at } = await shown(running);
    const since = await get(`queue=filtered&created_from=${encodeURIComponent(at)}`);
    const until = await get(`queue=filtered&created_to=${encodeURIComponent(at)}`);
    assert.deepEqual(newestFirst([...since, ...until]), all);
    assert.ok(since.includes(running) && !until.includes(running));
    assert.deepEqual(await get('queue=filtered&created_from=2126-01-01T00:00:00Z'), []);
    assert.deepEqual(await get('queue=filtered&created_to=0001-01-01T00:00:00Z'), []);
  });
});

describe('dead letters', () => {
  test('are listed with what most of them died of, without those that somebody has decided about', async () => {
    const timeouts = [];
    for (let i = 0; i < 3; i += 1) timeouts.push(await jobs.deadJob('timeout', { queue: 'morgue' }));
    const refused = await jobs.deadJob('refused: 404', { queue: 'morgue' });
    const discarded = await jobs.deadJob('timeout', { queue: 'morgue' });
    const nameless = await jobs.deadJob('x', { queue: 'morgue' });
    await jobs.system.db.query(sql`
      UPDATE jobs.job_queue SET resolution = 'discarded' WHERE job_id = ${discarded}`);
    await jobs.system.db.query(sql`
      UPDATE jobs.job_queue SET error_message = NULL, completed_at = NULL WHERE job_id = ${nameless}`);
    const get = async (query: string) => {
      const answer = await api().get<DeadList>(`${root}/dead?queue=morgue${query}`);
      assert.equal(answer.status, 200, answer.text);
      return answer.body;
    };
    const list = await get('');
    assert.deepEqual(Object.keys(list).sort(), ['as_of', 'groups', 'jobs', 'pagination']);
    const unresolved = newestFirst([...timeouts, refused, nameless]);
    assert.deepEqual(idsOf(list), unresolved);
    assert.equal(list.pagination.total_count, 5);
    assert.deepEqual(
      list.groups.map(({ queue, error, count }) => [queue, error, count]),
      [
        ['morgue', 'timeout', 3],
        ['morgue', 'refused: 404', 1],
        ['morgue', null, 1],
      ],
    );
    assert.deepEqual(idsOf(await get('&error=refused')), [refused]);
    assert.deepEqual((await get('&error=time')).groups.length, 1);
    assert.deepEqual(idsOf(await get('&error=imeout')), []);
    assert.deepEqual(idsOf(await get('&resolution=discarded')), [discarded]);
    assert.deepEqual(idsOf(await get('&resolution=cancelled')), []);
    assert.equal((await get('&resolution=any')).pagination.total_count, 6);
    assert.deepEqual(idsOf(await get('&page_size=1&cursor=')), unresolved.slice(0, 1));
    assert.ok(idsOf((await api().get<DeadList>(`${root}/dead?page_size=100`)).body).includes(refused));
  });

  test('a group is one queue and one cause, and its fingerprint selects its jobs', async () => {
    const ids = [];
    for (const n of [17, 18]) ids.push(await jobs.deadJob(`no order ${n}`, { queue: 'causes' }));
    const other = await jobs.deadJob('no customer 17', { queue: 'causes' });
    const elsewhere = await jobs.deadJob('no order 19', { queue: 'causes-too' });
    const cancelled = await jobs.job({ queue: 'causes' });
    await api().post(`${root}/${cancelled}/cancel`, { reason: 'no order 20' });
    const get = async (query: string) => {
      const answer = await api().get<DeadList>(`${root}/dead?${query}`);
      assert.equal(answer.status, 200, answer.text);
      return answer.body;
    };
    const { groups } = await get('queue=causes&resolution=any');
    assert.deepEqual(
      groups.map(({ error, count }) => [error, count]),
      [
        ['no order 18', 2],
        ['cancelled: no order 20', 1],
        ['no customer 17', 1],
      ],
    );
    const [cause] = groups;
    assert.match(cause?.fingerprint ?? '', /^v2:[0-9a-f]{32}$/);
    assert.equal(groups[1]?.fingerprint, null);
    assert.deepEqual(idsOf(await get(`queue=causes&fingerprint=${cause?.fingerprint}`)), newestFirst(ids));
    const everywhere = await get(`fingerprint=${cause?.fingerprint}`);
    assert.deepEqual(idsOf(everywhere), newestFirst([...ids, elsewhere]));
    assert.equal(everywhere.pagination.total_count, 3);
    assert.deepEqual(
      everywhere.groups.map(({ queue, count }) => [queue, count]),
      [
        ['causes', 2],
        ['causes-too', 1],
      ],
    );
    const found = await api().get<{ fingerprint: string; attempts: readonly { fingerprint: string }[] }>(
      `${root}/${ids[0]}`,
    );
    assert.equal(found.body.fingerprint, cause?.fingerprint);
    assert.equal(found.body.attempts.at(-1)?.fingerprint, cause?.fingerprint);
    const filter = { queue: 'causes', fingerprint: cause?.fingerprint };
    const preview = await api().post<{ matched: number }>(`${root}/requeue`, { ...filter, preview: true });
    assert.equal(preview.body.matched, 2, preview.text);
    assert.equal((await api().post<{ requeued: number }>(`${root}/requeue`, filter)).body.requeued, 2);
    assert.deepEqual(idsOf(await get('queue=causes')), [other]);
    for (const wrong of ['fingerprint=', `fingerprint=${'x'.repeat(101)}`])
      assert.equal((await api().get(`${root}/dead?${wrong}`)).status, 400);
    assert.equal((await api().post(`${root}/requeue`, { fingerprint: '' })).status, 400);
  });
});
