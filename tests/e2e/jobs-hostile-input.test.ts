import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import * as fc from 'fast-check';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, type RawRequest } from '../support/api-client.ts';
import { hostileBodies, hostileSegments } from '../support/hostile-input.ts';
import { root, startJobsSystem, type JobsSystem } from '../support/jobs-system.ts';

let jobs: JobsSystem;
let jobId: string;
before(async () => {
  jobs = await startJobsSystem();
  jobId = await jobs.job();
});
after(() => jobs.drop());

const json = { 'content-type': 'application/json' };
const raw = (request: RawRequest) => jobs.system.api.raw(request);
const postText = (body: string | Buffer) => raw({ method: 'POST', path: root, headers: json, body });
const countJobs = async (): Promise<bigint | undefined> =>
  (await jobs.system.db.query<{ count: bigint }>(sql`SELECT count(*) AS count FROM jobs.job_queue`))[0]
    ?.count;

describe('a new job is refused with 400, and says why', () => {
  const valid = { queue: 'mail', payload: {} };
  const field = (name: string, value: unknown): string => JSON.stringify({ ...valid, [name]: value });
  const cases: readonly (readonly [what: string, body: string, at: string])[] = [
    ['no queue', '{"payload":{}}', 'queue'],
    ['no payload', '{"queue":"mail"}', 'payload'],
    ['an unknown field', field('actor', 'root'), 'actor'],
    ['a status of its own', field('status', 'completed'), 'status'],
    ...['', 'Mail', '1mail', 'a b', 'ä', '../etc', 'a/b', 'a'.repeat(101), "x';--", 7, null, ['mail']].map(
      (name) => [`the queue ${JSON.stringify(name).slice(0, 20)}`, field('queue', name), 'queue'] as const,
    ),
    ...['', 'k'.repeat(501), 7, null].map(
      (key) =>
        [`the key ${JSON.stringify(key).slice(0, 20)}`, field('dedupe_key', key), 'dedupe_key'] as const,
    ),
    ...[-1, 101, 0.5, '1', null, 1e9].map(
      (priority) =>
        [`the priority ${JSON.stringify(priority)}`, field('priority', priority), 'priority'] as const,
    ),
    ...[0, -1, 1001, 2.5, '3', null, 2 ** 31].map(
      (most) =>
        [`max_retries of ${JSON.stringify(most)}`, field('max_retries', most), 'max_retries'] as const,
    ),
    ...[
      'tomorrow',
      'infinity',
      '2026-02-30T00:00:00Z',
      '2026-01-01T00:00:00',
      '2026-01-01',
      '+010000-01-01T00:00:00Z',
      '0000-01-01T00:00:00Z',
      '',
      1_767_225_600,
      null,
    ].map((at) => [`to run at ${JSON.stringify(at)}`, field('run_at', at), 'run_at'] as const),
    ['NUL in the payload', '{"queue":"mail","payload":{"a":["x\\u0000"]}}', 'payload.a.0'],
    ['NUL in a name', '{"queue":"mail","payload":{"\\u0000":1}}', 'payload.\ufffd'],
    ['a lone surrogate', '{"queue":"mail","payload":"\\ud800"}', 'payload'],
    ['NUL in the key', '{"queue":"mail","payload":1,"dedupe_key":"\\u0000"}', 'dedupe_key'],
    ['a number beyond all', '{"queue":"mail","payload":[1e999999]}', 'payload.0'],
    ['a number that would be rounded', '{"queue":"mail","payload":{"n":9007199254740993}}', 'payload.n'],
    ['a name that is there twice', '{"queue":"mail","payload":{"a":1,"a":2}}', 'payload.a'],
    ['a prototype', '{"queue":"mail","payload":{"__proto__":{}}}', 'payload.__proto__'],
  ];
  for (const [what, body, at] of cases)
    test(what, async () => {
      const before = await countJobs();
      const { details } = assertError(await postText(body), 400, 'SYS_JOBS_VALIDATION_ERROR');
      assert.ok(
        details.some((detail) => detail.field === at && detail.message !== ''),
        JSON.stringify(details),
      );
      assert.equal(await countJobs(), before);
    });

  for (const { name, body } of hostileBodies)
    test(`a body that is ${name}`, async () => {
      assertError(await postText(body), 400);
    });

  test('nested without end', async () => {
    const deep = `${'['.repeat(600)}${']'.repeat(600)}`;
    assertError(await postText(`{"queue":"mail","payload":${deep}}`), 400, 'SYS_JOBS_VALIDATION_ERROR');
  });

  test('another type than JSON is 415', async () => {
    const answer = await raw({
      method: 'POST',
      path: root,
      headers: { 'content-type': 'text/plain' },
      body: 'x',
    });
    assertError(answer, 415);
  });
});

test('any JSON that is sent is taken or refused, and what is taken comes back as it was', async () => {
  await fc.assert(
    fc.asyncProperty(fc.jsonValue({ stringUnit: 'binary' }), async (payload) => {
      const answer = await jobs.system.api.post<{ job_id: string }>(root, { queue: 'fuzz', payload });
      assert.ok([202, 400].includes(answer.status), answer.text);
      if (answer.status === 400) return;
      const { body } = await jobs.system.api.get<{ payload: unknown }>(`${root}/${answer.body.job_id}`);
      assert.deepEqual(body.payload, JSON.parse(JSON.stringify(payload)));
    }),
    { numRuns: 150 },
  );
});

test('numbers at the ends of what a double holds are kept', async () => {
  for (const number of ['1.7976931348623157e308', '5e-324', '-0', '-1e-7', '123456789012345680000']) {
    const answer = await postText(`{"queue":"numbers","payload":${number}}`);
    assert.equal(answer.status, 202, answer.text);
    const id = (answer.body as { job_id: string }).job_id;
    const { body } = await jobs.system.api.get<{ payload: number }>(`${root}/${id}`);
    assert.equal(body.payload, Number(number) + 0);
  }
});

describe('paths', () => {
  test('what is no id, and no queue, is 400 or 404', async () => {
    for (const segment of hostileSegments) {
      const paths: readonly (readonly [string, string])[] = [
        ['GET', `${root}/${segment}`],
        ['POST', `${root}/queues/${segment}/pause`],
        ['POST', `${root}/queues/${segment}/resume`],
      ];
      for (const [method, path] of paths) {
        const answer = await raw({ method, path });
        assert.ok([400, 404, 405, 414, 431].includes(answer.status), `${method} ${path}: ${answer.status}`);
      }
    }
  });

  test('a wrong method is told which are right', async () => {
    const answer = await raw({ method: 'DELETE', path: root });
    assertError(answer, 405);
    assert.deepEqual(answer.headers.get('allow')?.split(', ').sort(), ['GET', 'HEAD', 'POST']);
  });

  test('what takes no query and no body refuses one', async () => {
    for (const path of [`${root}/queues?x=1`, `${root}/${jobId}?x=1`])
      assertError(await raw({ method: 'GET', path }), 400, 'SYS_JOBS_VALIDATION_ERROR');
  });
});

describe('queries', () => {
  const both = [
    'page=0',
    'page=1000001',
    'page_size=101',
    'page_size=0',
    'page=1e2',
    'cursor=x',
    `cursor=${'A'.repeat(2000)}`,
    `cursor=${Buffer.from('[1,"not-a-uuid"]').toString('base64url')}`,
    `cursor=${Buffer.from('[1,"7"]').toString('base64url')}`,
    'queue=',
    `queue=${'q'.repeat(101)}`,
    'queue=%00',
    'queue=a&queue=b',
    'created_from=yesterday',
    'created_to=infinity',
    'created_to=2026-02-30T00:00:00Z',
    'created_from=0000-01-01T00:00:00Z',
    'nonsense=1',
    'queue[]=x',
    '__proto__=x',
    'queue=%ff',
  ];
  const own: Readonly<Record<string, readonly string[]>> = {
    [root]: [
      'status=dead',
      'status=',
      'status=PENDING',
      'dedupe_key=',
      `dedupe_key=${'k'.repeat(501)}`,
      'error=',
      `error=${'e'.repeat(1001)}`,
    ],
    [`${root}/dead`]: [
      'resolution=none',
      'resolution=',
      'error=',
      `error=${'e'.repeat(1001)}`,
      'status=failed',
    ],
  };
  for (const [path, queries] of Object.entries(own))
    for (const query of [...both, ...queries])
      test(`${path} refuses ${query.slice(0, 50)}`, async () => {
        assertError(await raw({ method: 'GET', path: `${path}?${query}` }), 400, 'SYS_JOBS_VALIDATION_ERROR');
      });

  test('a filter is a text and nothing else', async () => {
    for (const text of ["' OR 1=1 --", '%', '_', '\\', '$1', '${x}', '💩'.repeat(20)]) {
      const query = new URLSearchParams({ queue: text }).toString();
      for (const path of [root, `${root}/dead`]) {
        const answer = await jobs.system.api.get<{ jobs: readonly unknown[] }>(`${path}?${query}`);
        assert.equal(answer.status, 200, answer.text);
        assert.deepEqual(answer.body.jobs, []);
      }
      const error = new URLSearchParams({ error: text }).toString();
      assert.equal((await jobs.system.api.get(`${root}/dead?${error}`)).status, 200);
    }
  });

  test('the ends of what may be asked are answered', async () => {
    const nil = Buffer.from('[1,"00000000-0000-0000-0000-000000000000"]').toString('base64url');
    for (const query of [
      'page=1000000&page_size=100',
      `cursor=${nil}`,
      'created_from=0001-01-01T00:00:00Z&created_to=9999-12-31T23:59:59Z',
      'created_from=9999-12-31T23:59:59Z&created_to=0001-01-01T00:00:00Z',
      'created_from=2026-01-01T00:00:00 01:00',
    ])
      for (const path of [root, `${root}/dead`]) {
        const answer = await jobs.system.api.get(`${path}?${query}`);
        assert.equal(answer.status, 200, `${query}: ${answer.text}`);
      }
  });
});

describe('pausing refuses', () => {
  for (const { name, body } of hostileBodies)
    for (const verb of ['pause', 'resume'])
      test(`to ${verb} for ${name}`, async () => {
        const path = `${root}/queues/mail/${verb}`;
        assertError(await raw({ method: 'POST', path, headers: json, body }), 400);
      });

  test('a reason that says nothing', async () => {
    for (const reason of ['', ' ', '\n', 'x'.repeat(1001)])
      assertError(
        await jobs.system.api.post(`${root}/queues/mail/pause`, { reason }),
        400,
        'SYS_JOBS_VALIDATION_ERROR',
      );
  });

  test('nobody: whatever the header says is a name or nobody', async () => {
    const answer = await raw({
      method: 'POST',
      path: `${root}/queues/mail/pause`,
      headers: { 'x-actor': `\u00ff\u00fe${'a'.repeat(2000)}` },
    });
    assert.equal(answer.status, 200, answer.text);
    assert.ok((answer.body as { paused_by: string }).paused_by.length <= 255);
  });
});
