import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { createTestServer, talk } from '../../../tests/support/test-server.ts';
import type { TestServer } from '../../../tests/support/test-server.ts';
import type { ErrorBody } from './errors/error-answer.ts';

const limits = { headersTimeoutMs: 200, requestTimeoutMs: 400, checkEveryMs: 50 };
const within = (ms: number) => AbortSignal.timeout(ms);

type Answer = Readonly<{ status: number; head: string; error: ErrorBody['error'] }>;

function parseAnswer(text: string): Answer {
  const [head = '', body = ''] = text.split('\r\n\r\n', 2);
  const { error } = JSON.parse(body) as ErrorBody;
  assert.match(head, /content-type: application\/json/i);
  assert.ok(head.toLowerCase().includes(`x-request-id: ${error.request_id.toLowerCase()}`), head);
  assert.ok(head.toLowerCase().includes(`content-length: ${Buffer.byteLength(body)}`), head);
  return { status: Number(head.split(' ')[1]), head, error };
}

let shared: TestServer;
before(async () => {
  shared = createTestServer({ limits });
  await shared.server.start();
});
after(() => shared.server.stop(within(1000)));

const ask = async (request: string | Buffer) => parseAnswer(await talk(shared.server, request));

test('input that is not HTTP gets an HTTP answer', async () => {
  const nonsense: readonly (string | Buffer)[] = [
    'hello\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    'BREW /pot HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /healthz HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n',
    'GET /healthz HTTP/1.1\r\nHost: x\r\nX-Nul: a\0b\r\n\r\n',
    'GET /a\0b HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    'POST /api/v1/things HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'POST /api/v1/things HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
    'POST /api/v1/things HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
  ];
  for (const request of nonsense) {
    const { status, error } = await ask(request);
    assert.equal(status, 400, String(request));
    assert.equal(error.code, 'SYS_HTTP_VALIDATION_ERROR');
  }
});

test('a request without a host is rejected with our error body', async () => {
  const { status, error } = await ask('GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n');
  assert.equal(status, 400);
  assert.equal(error.message, 'the request has no host header');
});

test('an unknown expectation is rejected with our error body', async () => {
  const { status, error } = await ask('GET /healthz HTTP/1.1\r\nHost: x\r\nExpect: miracles\r\n\r\n');
  assert.equal(status, 417);
  assert.equal(error.code, 'SYS_HTTP_EXPECTATION_FAILED');
});

test('a request line or headers above the limit are rejected', async () => {
  const huge = 'a'.repeat(20_000);
  for (const request of [
    `GET /${huge} HTTP/1.1\r\nHost: x\r\n\r\n`,
    `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Huge: ${huge}\r\n\r\n`,
  ]) {
    const { status, error } = await ask(request);
    assert.equal(status, 431);
    assert.equal(error.code, 'SYS_HTTP_HEADERS_TOO_LARGE');
  }
});

test('a head or body that arrives too slowly times out', async () => {
  for (const request of [
    'GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow:',
    'POST /api/v1/things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
  ]) {
    const { status, error } = await ask(request);
    assert.equal(status, 408);
    assert.equal(error.code, 'SYS_HTTP_REQUEST_TIMEOUT');
  }
});

test('invalid bytes after a complete request do not replace its answer', async () => {
  const answers = await talk(shared.server, 'GET /readyz HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n');
  assert.match(answers, /^HTTP\/1\.1 200 OK[^]*"status":"healthy"[^]*HTTP\/1\.1 400 Bad Request/);
});

test('a body that is too large is rejected while it is being sent', async () => {
  const body = 'x'.repeat(3 * 1024 * 1024);
  const response = await fetch(`${shared.server.address()?.url}/api/v1/things`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  assert.equal(response.status, 413);
  const { error } = (await response.json()) as ErrorBody;
  assert.equal(error.code, 'SYS_THINGS_TOO_LARGE');
  const chunked = await ask(
    `POST /api/v1/things HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
  );
  assert.equal(chunked.status, 413);
});

test('other forms of request targets are answered', async () => {
  const close = 'Host: x\r\nConnection: close\r\n\r\n';
  assert.match(await talk(shared.server, `GET http://x/healthz HTTP/1.1\r\n${close}`), /^HTTP\/1\.1 200 /);
  assert.equal((await ask(`OPTIONS * HTTP/1.1\r\n${close}`)).status, 404);
  assert.equal((await ask(`GET /api/v1/things/\xff HTTP/1.1\r\n${close}`)).status < 500, true);
});

test('a client that disconnects is counted and is not a server error', async () => {
  const { server, metrics, logged } = createTestServer();
  const entered = Promise.withResolvers<void>();
  const left = Promise.withResolvers<void>();
  server.addRoutes('slow', (app) => {
    app.get('/slow', { config: { access: 'authenticated' } }, async (request) => {
      entered.resolve();
      await once(request.socket, 'close');
      left.resolve();
      return {};
    });
  });
  await server.start();
  const socket = connect(server.address()?.port ?? 0, '127.0.0.1');
  socket.write('GET /slow HTTP/1.1\r\nHost: x\r\nX-Request-Id: gone\r\n\r\n');
  await entered.promise;
  socket.destroy();
  await left.promise;
  const half = connect(server.address()?.port ?? 0, '127.0.0.1');
  half.write('POST /api/v1/things HTTP/1.1\r\nHost: x\r\nX-Request-Id: half\r\nContent-Length: 9\r\n\r\n{');
  const [, response] = (await once(server.app.server, 'request')) as [unknown, ServerResponse];
  half.destroy();
  await once(response, 'close');
  await server.stop(within(1000));
  assert.match(await metrics.render(), /http_requests_total\{method="GET",route="\/slow",status="499"\} 1/);
  const line = logged().find((entry) => entry['request_id'] === 'gone');
  assert.equal(line?.['aborted'], true);
  assert.deepEqual(
    logged().filter((entry) => entry['level'] === 'error'),
    [],
  );
});

test('a client that disconnects while sending its body is not reported as an outage', async () => {
  const { server, logged, metrics } = createTestServer({
    isOutage: (error) => (error as NodeJS.ErrnoException).code === 'ECONNRESET',
  });
  await server.start();
  const { port } = server.address() ?? { port: 0 };
  for (const framing of ['Content-Length: 90\r\n\r\n{', 'Transfer-Encoding: chunked\r\n\r\n5\r\n{"n']) {
    const socket = connect(port, '127.0.0.1');
    socket.write(`POST /api/v1/things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${framing}`);
    const [, response] = (await once(server.app.server, 'request')) as [unknown, ServerResponse];
    socket.destroy();
    await once(response, 'close');
  }
  await server.stop(within(1000));
  assert.match(await metrics.render(), /http_requests_total\{method="POST",route="[^"]+",status="499"\} 2/);
  assert.deepEqual(
    logged().filter((entry) => entry['level'] !== 'info' && entry['level'] !== 'debug'),
    [],
  );
});

test('a stop lets running requests finish, and closes their connections and idle ones', async () => {
  const { server } = createTestServer();
  const entered = Promise.withResolvers<void>();
  const leave = Promise.withResolvers<void>();
  server.addRoutes('slow', (app) => {
    app.get('/slow', { config: { access: 'authenticated' } }, async () => {
      entered.resolve();
      await leave.promise;
      return { done: true };
    });
  });
  await server.start();
  const { port } = server.address() ?? { port: 0 };
  const silent = connect(port, '127.0.0.1');
  const idle = connect(port, '127.0.0.1');
  await Promise.all([once(silent, 'connect'), once(idle, 'connect')]);
  idle.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(idle, 'data');
  const running = talk(server, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
  await entered.promise;

  const closedSockets = Promise.all([once(silent, 'close'), once(idle, 'close')]);
  const stopped = server.stop(within(5000));
  silent.resume();
  idle.resume();
  await closedSockets;
  await assert.rejects(fetch(`http://127.0.0.1:${port}/healthz`));
  leave.resolve();
  await stopped;
  assert.match(await running, /^HTTP\/1\.1 200 OK[^]*connection: close[^]*\{"done":true\}$/i);
  assert.equal(server.address(), undefined);
});

test('a stop closes connections at its deadline, also if that is in the past', async () => {
  for (const deadline of [within(50), AbortSignal.abort()]) {
    const { server } = createTestServer();
    const entered = Promise.withResolvers<void>();
    server.addRoutes('slow', (app) => {
      app.get('/slow', { config: { access: 'authenticated' } }, () => {
        entered.resolve();
        return new Promise(() => {});
      });
    });
    await server.start();
    const running = talk(server, 'GET /slow HTTP/1.1\r\nHost: x\r\n\r\n');
    await entered.promise;
    await server.stop(deadline);
    assert.equal(await running, '');
  }
});

test('a stop without a start returns', async () => {
  await createTestServer().server.stop(within(100));
});

test('a port in use is an error, or the next free one is used', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const failing = createTestServer({ port, onPortTaken: 'fail' }).server;
  await assert.rejects(failing.start(), { code: 'EADDRINUSE' });
  await failing.stop(within(100));

  const { server } = createTestServer({ host: 'localhost', port, onPortTaken: 'next' });
  await server.start();
  const address = server.address();
  assert.ok(address !== undefined && address.port > port);
  assert.equal((await fetch(`${address.url}/healthz`)).status, 200);
  await server.stop(within(1000));
  taken.close();
});
