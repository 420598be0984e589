import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { assertError } from '../../../tests/support/api-client.ts';
import { hostileBodies, hostileSegments } from '../../../tests/support/hostile-input.ts';
import { root, startJobsApi, type ClaimedBody, type JobsApi } from '../../../tests/support/jobs-api.ts';

let jobs: JobsApi;
before(async () => void (jobs = await startJobsApi()));
after(() => jobs.drop());

/** A claimed job of a new queue. */
async function claimed(
  settings: Parameters<JobsApi['queue']>[0] = {},
  more: object = {},
): Promise<ClaimedBody> {
  const queue = await jobs.queue(settings);
  await jobs.enqueue(queue);
  const [job] = await jobs.claim(queue, more);
  return job ?? assert.fail('nothing was claimed');
}

const unknownId = '01900000-0000-7000-8000-000000000000';

describe('hostile input', () => {
  test('invalid fields are named, and nothing is claimed', async () => {
    const queue = await jobs.queue();
    const jobId = await jobs.enqueue(queue);
    const bodies: readonly (readonly [body: unknown, field: string])[] = [
      [undefined, 'worker'],
      [{}, 'worker'],
      [{ worker: '' }, 'worker'],
      [{ worker: ' \u200b\n ' }, 'worker'],
      [{ worker: 'x'.repeat(201) }, 'worker'],
      [{ worker: 7 }, 'worker'],
      [{ worker: 'w', limit: 0 }, 'limit'],
      [{ worker: 'w', limit: 101 }, 'limit'],
      [{ worker: 'w', limit: 1.5 }, 'limit'],
      [{ worker: 'w', limit: '1' }, 'limit'],
      [{ worker: 'w', lease_seconds: 0 }, 'lease_seconds'],
      [{ worker: 'w', lease_seconds: 3601 }, 'lease_seconds'],
      [{ worker: 'w', wait_seconds: 31 }, 'wait_seconds'],
      [{ worker: 'w', wait_seconds: -1 }, 'wait_seconds'],
      [{ worker: 'w', lane: 'alone' }, 'lane'],
    ];
    for (const [body, field] of bodies) {
      const { details } = assertError(await jobs.api.post(`${root}/queues/${queue}/claim`, body), 400);
      assert.equal(details[0]?.field, field, JSON.stringify(body));
    }
    assert.equal((await jobs.row(jobId)).status, 'pending');
  });

  test('invalid epochs, waits and errors are rejected', async () => {
    const { job_id: jobId, epoch } = await claimed();
    const bodies: readonly (readonly [what: string, body: unknown])[] = [
      ...['complete', 'fail', 'heartbeat', 'release'].flatMap((what) =>
        [undefined, {}, { epoch: 0 }, { epoch: -1 }, { epoch: '1' }, { epoch: 1.5 }, { epoch: null }].map(
          (body) => [what, body === undefined ? body : { error: 'x', ...body }] as const,
        ),
      ),
      ['complete', { epoch, status: 'completed' }],
      ['fail', { epoch }],
      ['fail', { epoch, error: 7 }],
      ['fail', { epoch, error: 'x', retry_after_seconds: -1 }],
      ['fail', { epoch, error: 'x', retry_after_seconds: 1e9 }],
      ['fail', { epoch, error: 'x', retryable: 'no' }],
      ['heartbeat', { epoch, lease_seconds: 3601 }],
      ['release', { epoch, result: 1 }],
    ];
    for (const [what, body] of bodies)
      assertError(await jobs.api.post(`${root}/${jobId}/${what}`, body), 400, 'SYS_JOBS_VALIDATION_ERROR');
    for (const body of [
      `{"epoch":${epoch},"result":"a\\u0000b"}`,
      `{"epoch":${epoch},"result":{"\\ud800":1}}`,
      `{"epoch":${epoch},"result":1e999}`,
      `{"epoch":${epoch},"result":1,"result":2}`,
      '{"epoch":99999999999999999999}',
    ]) {
      const headers = { 'content-type': 'application/json' };
      const path = `${root}/${jobId}/complete`;
      assertError(await jobs.api.raw({ method: 'POST', path, headers, body }), 400);
    }
    assert.equal((await jobs.row(jobId)).status, 'running');
  });

  test('no path and no body causes more than a client error', async () => {
    const headers = { 'content-type': 'application/json' };
    const body = '{"epoch":1,"worker":"w","error":"x"}';
    for (const segment of hostileSegments)
      for (const path of [`queues/${segment}/claim`, `${segment}/complete`, `${segment}/heartbeat`]) {
        const answer = await jobs.api.raw({ method: 'POST', path: `${root}/${path}`, headers, body });
        assert.ok(answer.status >= 400 && answer.status < 500, `${path.slice(0, 60)}: ${answer.text}`);
      }
    const queue = await jobs.queue();
    for (const { name, body: hostile } of hostileBodies)
      for (const path of [`queues/${queue}/claim`, `${unknownId}/fail`, `${unknownId}/release`]) {
        const answer = await jobs.api.raw({
          method: 'POST',
          path: `${root}/${path}`,
          headers,
          body: hostile,
        });
        assert.ok(answer.status >= 400 && answer.status < 500, `${name}: ${answer.text}`);
      }
  });
});
