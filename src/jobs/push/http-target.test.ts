import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { unusedPort } from '../../../tests/support/raw-server.ts';
import { readSignal, type HandlerSignal } from '../domain/handler-signals.ts';
import type { ClaimedJob } from '../claim-jobs.ts';
import { createHttpTarget, type HttpTarget, type TargetSettings } from './http-target.ts';

const job: ClaimedJob = {
  jobId: '01890a5d-ac96-774b-bcce-b302099a8057',
  queue: 'summarize',
  payload: '{"id": 12345678901234567890, "price": 1.10}',
  isPayloadApart: false,
  claimedAtMs: 0,
  dueForMs: 0,
  retryCount: 1,
  maxRetries: 3,
  deferrals: 0,
  trace: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  lease: { owner: 'me', epoch: 42n, endsAtMs: Infinity },
};

type Scene = Readonly<{ target: HttpTarget; pace: string[]; gate: string[]; misconfigured: string[] }>;

function aim(
  t: TestContext,
  url: string,
  { isOutage = false, ...changes }: Partial<TargetSettings> & { isOutage?: boolean } = {},
): Scene {
  const pace: string[] = [];
  const gate: string[] = [];
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
      gate: {
        noteDown: async (_job, { isUnreachable }) => {
          gate.push(isUnreachable ? 'unreachable' : 'down');
          return isOutage;
        },
        noteContact: async () => void gate.push('contact'),
      },
      onMisconfigured: (why) => misconfigured.push(why),
    },
  );
  t.after(() => target.close());
  return { target, pace, gate, misconfigured };
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

/** The handler signal that was returned in place of a result. */
async function signalOf(
  pushed: Promise<unknown>,
): Promise<Readonly<{ message: string; handlerSignal: HandlerSignal }>> {
  const error = await pushed;
  assert.ok(error instanceof Error);
  return { message: error.message, handlerSignal: readSignal(error) ?? assert.fail(error.message) };
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

test('each response becomes a handler signal or result', async (t) => {
  const url = await serve(t, (request, response) => {
    const status = Number(request.url?.slice(1));
    response.writeHead(status, { 'retry-after': '2', location: '/200' }).end('why');
  });
  const saying = async (status: number): Promise<HandlerSignal> =>
    (await signalOf(aim(t, `${url}/${status}`).target.push(job, patient()))).handlerSignal;
  assert.deepEqual(await saying(429), { signal: 'busy', delayMs: 2000 });
  assert.deepEqual(await saying(503), { signal: 'busy', delayMs: 2000 });
  assert.deepEqual(await saying(404), { signal: 'not_retryable' });
  assert.deepEqual(await saying(302), { signal: 'not_retryable' }, 'a redirect is not followed');
  assert.deepEqual(await saying(500), { signal: 'retry_after', delayMs: 2000 });
  assert.equal(await aim(t, `${url}/204`).target.push(job, patient()), undefined);
  const { target, pace } = aim(t, `${url}/429`);
  await signalOf(target.push(job, patient()));
  assert.deepEqual(pace, ['start', 'busy', 'end']);
});

test('the gate learns whether the target answered, and an outage costs the job nothing', async (t) => {
  const url = await serve(t, (request, response) => {
    const status = Number(request.url?.slice(1));
    if (status > 0) response.writeHead(status).end();
  });
  const cases: readonly (readonly [path: string, says: string, signal: string | null])[] = [
    ['200', 'contact', null],
    ['404', 'contact', 'not_retryable'],
    ['429', 'contact', 'busy'],
    ['503', 'contact', 'busy'],
    ['500', 'down', 'outage'],
    ['502', 'unreachable', 'outage'],
    ['504', 'unreachable', 'outage'],
    ['never', 'down', 'outage'],
  ];
  for (const [path, says, signal] of cases) {
    const { target, gate } = aim(t, `${url}/${path}`, { isOutage: true, timeoutMs: () => 300 });
    const result = await target.push(job, patient());
    assert.deepEqual([gate, readSignal(result)?.signal ?? null], [[says], signal], path);
  }
  const unreachable = aim(t, `http://127.0.0.1:${await unusedPort()}/`, { isOutage: true });
  const { handlerSignal: signal, message } = await signalOf(unreachable.target.push(job, patient()));
  assert.deepEqual([unreachable.gate, signal.signal], [['unreachable'], 'outage']);
  assert.match(message, /^the target is down: not sent: .*ECONNREFUSED/);
  const cancelled = aim(t, url, { isOutage: true });
  await cancelled.target.push(job, { signal: AbortSignal.abort() });
  assert.deepEqual(cancelled.gate, [], 'a job whose lease was lost says nothing about its target');
});

test('a slow call times out', async (t) => {
  const url = await serve(t, (request, response) => {
    if (request.url === '/trickle') response.writeHead(200).write('{');
  });
  for (const path of ['hang', 'trickle']) {
    const { target } = aim(t, `${url}/${path}`, { timeoutMs: () => 200 });
    const { message, handlerSignal } = await signalOf(target.push(job, patient()));
    assert.deepEqual([message, handlerSignal.signal], ['timed out after 200 ms', 'retry_after']);
  }
});

test('a target that accepts no connection in time is unreachable', async (t) => {
  // Waits for a TLS handshake that never comes.
  const silent = createTcpServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => silent.close());
  const url = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const { target, gate } = aim(t, url, { timeoutMs: () => 200 });
  const { message, handlerSignal } = await signalOf(target.push(job, patient()));
  assert.deepEqual([message, handlerSignal.signal], ['no connection within 200 ms', 'retry_after']);
  assert.deepEqual(gate, ['unreachable']);
});

test('a refused and a broken connection are retryable failures', async (t) => {
  const unreachable = aim(t, `http://127.0.0.1:${await unusedPort()}/`);
  const refused = await signalOf(unreachable.target.push(job, patient()));
  assert.match(refused.message, /^not sent: .*ECONNREFUSED/);
  assert.deepEqual([refused.handlerSignal.signal, unreachable.pace], ['retry_after', ['start', 'end']]);

  const url = await serve(t, (request, response) => {
    if (request.url === '/reset') return request.socket.resetAndDestroy();
    response.writeHead(500, { 'content-length': '100' }).write('half');
    setImmediate(() => request.socket.destroy());
  });
  const reset = await signalOf(aim(t, `${url}/reset`).target.push(job, patient()));
  assert.match(reset.message, /^no answer: /);
  assert.equal(reset.handlerSignal.signal, 'retry_after');
  const half = await signalOf(aim(t, `${url}/half`).target.push(job, patient()));
  assert.deepEqual([half.message, half.handlerSignal.signal], ['HTTP 500: half', 'retry_after']);
});

test('a success whose body is incomplete or longer than 64 KiB has no result', async (t) => {
  const url = await serve(t, (request, response) => {
    if (request.url === '/long') return void response.write(`"${'a'.repeat(65_536)}`);
    // Valid JSON, but the response is incomplete.
    response.writeHead(200, { 'content-length': '100' }).write('{"summary":"short"}');
    setImmediate(() => request.socket.destroy());
  });
  for (const path of ['half', 'long'])
    assert.equal(await aim(t, `${url}/${path}`).target.push(job, patient()), undefined);
});

test('a call ends with the signal of its job, while it connects, waits, or reads a slow body', async (t) => {
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
  // The response starts when its headers arrive, not when they are sent.
  const onHead = (): void => reached.trickle.resolve();
  subscribe('undici:request:headers', onHead);
  t.after(() => unsubscribe('undici:request:headers', onHead));
  for (const path of ['wait', 'trickle'] as const) {
    const controller = new AbortController();
    const pushed = signalOf(aim(t, `${url}/${path}`).target.push(job, controller));
    await reached[path].promise;
    controller.abort(new Error('cancelled'));
    assert.match((await pushed).message, /aborted/);
  }
  await closed.promise;
  const early = await signalOf(aim(t, url).target.push(job, { signal: AbortSignal.abort() }));
  assert.match(early.message, /lease was lost/);
});

test('a secret that the target repeats is not stored', async (t) => {
  const url = await serve(t, (request, response) => {
    response.writeHead(401).end(`no such key: ${String(request.headers['x-api-key'])}`);
  });
  const { target } = aim(t, url, { headers: { 'X-Api-Key': () => 'very-secret-key' } });
  const { message } = await signalOf(target.push(job, patient()));
  assert.equal(message, 'HTTP 401: no such key: ***');
});

test('a header that cannot be read or sent costs the job nothing, and is reported', async (t) => {
  const url = await serve(t, (_request, response) => void response.end());
  const unreadable = (): string => {
    throw new Error('ENOENT: no such file');
  };
  for (const value of [unreadable, () => 'two\nlines']) {
    const { target, misconfigured, pace } = aim(t, url, { headers: { 'X-Api-Key': value } });
    const { handlerSignal } = await signalOf(target.push(job, patient()));
    assert.deepEqual([handlerSignal, misconfigured.length], [{ signal: 'outage', delayMs: 0 }, 1]);
    assert.ok(!pace.includes('busy'), 'the queue is not throttled');
  }
});
