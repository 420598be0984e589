import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { unusedPort } from '../../../tests/support/raw-server.ts';
import { readSignal, type HandlerSignal } from '../domain/handler-signals.ts';
import type { ClaimedJob } from '../usecase/ports.ts';
import { createHttpTarget, type HttpTarget, type TargetSettings } from './http-target.ts';

const job: ClaimedJob = {
  jobId: '01890a5d-ac96-774b-bcce-b302099a8057',
  queue: 'summarize',
  payload: '{"id": 12345678901234567890, "price": 1.10}',
  isPayloadApart: false,
  retryCount: 1,
  maxRetries: 3,
  deferrals: 0,
  trace: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  lease: { owner: 'me', epoch: 42n, endsAtMs: Infinity },
};

type Scene = Readonly<{ target: HttpTarget; pace: string[]; misconfigured: string[] }>;

function aim(t: TestContext, url: string, changes: Partial<TargetSettings> = {}): Scene {
  const pace: string[] = [];
  const misconfigured: string[] = [];
  const settings = { headers: {}, tls: undefined, connections: 2, connectTimeoutMs: 2000, ...changes };
  const target = createHttpTarget(
    { url, timeoutMs: () => 20_000, ...settings },
    {
      pace: {
        noteStart: () => void pace.push('start'),
        noteEnd: () => void pace.push('end'),
        noteBusy: () => void pace.push('busy'),
      },
      onMisconfigured: (why) => misconfigured.push(why),
    },
  );
  t.after(() => target.close());
  return { target, pace, misconfigured };
}

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const patient = (): Readonly<{ signal: AbortSignal }> => ({ signal: new AbortController().signal });

/** What the worker learns from what was thrown. */
async function thrownBy(
  pushed: Promise<unknown>,
): Promise<Readonly<{ message: string; told: HandlerSignal }>> {
  const error: unknown = await pushed.then(
    () => assert.fail('it did not fail'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof Error);
  return { message: error.message, told: readSignal(error) ?? assert.fail(error.message) };
}

test('a job arrives as JSON with its key, its trace and the configured headers', async (t) => {
  let seen:
    | Readonly<{ method?: string; url?: string; headers: IncomingHttpHeaders; body: string }>
    | undefined;
  const url = await serve(t, (request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => void (body += text));
    request.on('end', () => {
      const { method = '', url: path = '', headers } = request;
      seen = { method, url: path, headers, body };
      response.end('{"summary":"short"}');
    });
  });
  const headers = { Authorization: () => 'Bearer secret-word', 'Idempotency-Key': () => 'not this one' };
  const { target, pace } = aim(t, `${url}/summarize?fast=1`, { headers });
  assert.deepEqual(await target.push(job, patient()), { summary: 'short' });
  assert.deepEqual([seen?.method, seen?.url], ['POST', '/summarize?fast=1']);
  assert.equal(
    seen?.body,
    `{"job_id":"${job.jobId}","queue":"summarize","payload":${job.payload as string},"attempt":2,"epoch":42}`,
    'no number of the payload is rounded',
  );
  assert.equal(seen?.headers['idempotency-key'], job.jobId);
  assert.equal(seen?.headers['traceparent'], job.trace);
  assert.equal(seen?.headers['content-type'], 'application/json');
  assert.equal(seen?.headers['authorization'], 'Bearer secret-word');
  assert.deepEqual(pace, ['start', 'end']);
});

test('each answer is what a handler would say', async (t) => {
  const url = await serve(t, (request, response) => {
    const status = Number(request.url?.slice(1));
    response.writeHead(status, { 'retry-after': '2', location: '/200' }).end('why');
  });
  const saying = async (status: number): Promise<HandlerSignal> =>
    (await thrownBy(aim(t, `${url}/${status}`).target.push(job, patient()))).told;
  assert.deepEqual(await saying(429), { signal: 'busy', delayMs: 2000 });
  assert.deepEqual(await saying(503), { signal: 'busy', delayMs: 2000 });
  assert.deepEqual(await saying(404), { signal: 'not_retryable' });
  assert.deepEqual(await saying(302), { signal: 'not_retryable' }, 'a redirect is not followed');
  assert.deepEqual(await saying(500), { signal: 'retry_after', delayMs: 2000 });
  assert.equal(await aim(t, `${url}/204`).target.push(job, patient()), undefined);
  const { target, pace } = aim(t, `${url}/429`);
  await thrownBy(target.push(job, patient()));
  assert.deepEqual(pace, ['start', 'busy', 'end']);
});

test('nobody there and a broken connection are failures that come again', async (t) => {
  const nobody = aim(t, `http://127.0.0.1:${await unusedPort()}/`);
  const refused = await thrownBy(nobody.target.push(job, patient()));
  assert.match(refused.message, /^not sent: .*ECONNREFUSED/);
  assert.deepEqual([refused.told.signal, nobody.pace], ['retry_after', ['start', 'end']]);

  const url = await serve(t, (request, response) => {
    if (request.url === '/reset') return request.socket.resetAndDestroy();
    response.writeHead(500, { 'content-length': '100' }).write('half');
    setImmediate(() => request.socket.destroy());
  });
  const reset = await thrownBy(aim(t, `${url}/reset`).target.push(job, patient()));
  assert.match(reset.message, /^no answer: /);
  assert.equal(reset.told.signal, 'retry_after');
  const half = await thrownBy(aim(t, `${url}/half`).target.push(job, patient()));
  assert.deepEqual([half.message, half.told.signal], ['HTTP 500: half', 'retry_after']);
});

test('a success whose body breaks off, or is longer than 64 KiB, is done without a result', async (t) => {
  const url = await serve(t, (request, response) => {
    if (request.url === '/long') return void response.write(`"${'a'.repeat(65_536)}`);
    // All of a result, but who knows?
    response.writeHead(200, { 'content-length': '100' }).write('{"summary":"short"}');
    setImmediate(() => request.socket.destroy());
  });
  for (const path of ['half', 'long'])
    assert.equal(await aim(t, `${url}/${path}`).target.push(job, patient()), undefined);
});

test('a call ends with the signal of its job: while it connects, while it waits, and while a body trickles', async (t) => {
  const reached = { wait: Promise.withResolvers<void>(), trickle: Promise.withResolvers<void>() };
  const closed = Promise.withResolvers<void>();
  const url = await serve(t, (request, response) => {
    if (request.url === '/trickle') {
      response.writeHead(200).write('{');
    } else {
      request.socket.on('close', closed.resolve);
      reached.wait.resolve();
    }
  });
  // An answer has begun when its head has come, not when it was sent.
  const onHead = (): void => reached.trickle.resolve();
  subscribe('undici:request:headers', onHead);
  t.after(() => unsubscribe('undici:request:headers', onHead));
  for (const path of ['wait', 'trickle'] as const) {
    const controller = new AbortController();
    const pushed = thrownBy(aim(t, `${url}/${path}`).target.push(job, controller));
    await reached[path].promise;
    controller.abort(new Error('cancelled'));
    assert.match((await pushed).message, /broken off/);
  }
  await closed.promise;
  const early = await thrownBy(aim(t, url).target.push(job, { signal: AbortSignal.abort() }));
  assert.match(early.message, /taken away/);
});

test('a secret that the target repeats is not written down', async (t) => {
  const url = await serve(t, (request, response) => {
    response.writeHead(401).end(`no such key: ${String(request.headers['x-api-key'])}`);
  });
  const { target } = aim(t, url, { headers: { 'X-Api-Key': () => 'very-secret-key' } });
  const { message } = await thrownBy(target.push(job, patient()));
  assert.equal(message, 'HTTP 401: no such key: ***');
});

test('a header that cannot be read or sent costs the job nothing, and is told', async (t) => {
  const url = await serve(t, (_request, response) => void response.end());
  const unreadable = (): string => {
    throw new Error('ENOENT: no such file');
  };
  for (const value of [unreadable, () => 'two\nlines']) {
    const { target, misconfigured, pace } = aim(t, url, { headers: { 'X-Api-Key': value } });
    const { told } = await thrownBy(target.push(job, patient()));
    assert.deepEqual([told, misconfigured.length], [{ signal: 'busy', delayMs: 0 }, 1]);
    assert.ok(!pace.includes('busy'), 'nobody is slowed down');
  }
});
