import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { createTestServer } from '../../../../tests/support/test-server.ts';
import type { ErrorBody } from '../errors/error-answer.ts';

const config = { access: 'public' } as const;

async function startSlowServer(t: TestContext) {
  const { server } = createTestServer({ limits: { handlerTimeoutMs: 50, silentConnectionMs: 300 } });
  const release = new AbortController();
  const released = once(release.signal, 'abort');
  const stream = new PassThrough();
  server.addRoutes('slow', (app) => {
    app.post('/silent', { config, schema: { body: {} } }, async () => {
      await released;
      return { done: true };
    });
    app.post('/minutes', { config: { ...config, takesMinutes: true } }, async () => {
      await released;
      return { done: true };
    });
    app.get('/stream', { config }, (_request, reply) => reply.type('text/plain').send(stream));
  });
  await server.start();
  t.after(() => server.stop(AbortSignal.timeout(1000)));
  return { url: server.address()?.url ?? '', release, stream };
}

const post = (url: string): Promise<Response> =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' });

test('a handler that does not answer in time is answered for with 503', async (t) => {
  const { url, release } = await startSlowServer(t);
  const answer = await post(`${url}/silent`);
  assert.equal(answer.status, 503);
  const { error } = (await answer.json()) as ErrorBody;
  assert.match(error.message, /^timed out after 50 ms; the request may still take effect$/);
  assert.equal(answer.headers.get('retry-after'), '5');
  release.abort();
  assert.equal((await fetch(`${url}/healthz`)).status, 200, 'the late answer of the handler harms nobody');
});

test('a route that takes minutes is waited for, on a silent connection too', async (t) => {
  const { url, release } = await startSlowServer(t);
  const answering = post(`${url}/minutes`);
  await Promise.race([answering, new Promise((done) => setTimeout(done, 500))]);
  release.abort();
  assert.deepEqual(await (await answering).json(), { done: true });
});

test(
  'a stream outlives the timeout of handlers, and ends when nothing moves any more',
  { timeout: 20_000 },
  async (t) => {
    const { url, stream } = await startSlowServer(t);
    stream.write('first');
    const answer = await fetch(`${url}/stream`);
    const reader = answer.body?.getReader();
    assert.equal(new TextDecoder().decode((await reader?.read())?.value), 'first');
    for (let round = 0; round < 4; round += 1) {
      await new Promise((done) => setTimeout(done, 50));
      stream.write('more');
      assert.equal(new TextDecoder().decode((await reader?.read())?.value), 'more');
    }
    await assert.rejects(async () => reader?.read(), 'the silent connection is cut');
  },
);
