import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { loopbackTls } from '../../../tests/support/loopback-tls.ts';
import { onRequest, serveRaw, unusedPort } from '../../../tests/support/raw-server.ts';
import { createHttpPool, startCall, type CallEnd, type HttpCall, type PoolOptions } from './http-call.ts';

type Changes = Partial<HttpCall> & Partial<PoolOptions>;

/** One call to a server, on a pool of its own. */
async function call(t: TestContext, origin: string, changes: Changes = {}): Promise<CallEnd> {
  const { tls, timeoutMs = 2000, connections = 1, ...of } = changes;
  const pool = createHttpPool({ origin, connections, timeoutMs, tls });
  t.after(() => pool.destroy());
  return startCall(pool, {
    method: 'POST',
    path: '/orders',
    headers: { 'content-type': 'application/json' },
    body: '{"a":1}',
    timeoutMs,
    maxResponseBytes: 1000,
    hasOwnConnection: false,
    ...of,
  }).ended;
}

/** What becomes of a call to a server that does this with a connection. */
async function callRaw(
  t: TestContext,
  onSocket: (socket: Socket) => void,
  changes?: Changes,
): Promise<CallEnd> {
  const { port } = await serveRaw(t, onSocket);
  return call(t, `http://127.0.0.1:${port}`, changes);
}

const replying =
  (...parts: readonly string[]) =>
  (socket: Socket): void =>
    onRequest(socket, () => socket.end(parts.join('')));

function codeIn(outcome: CallEnd): string {
  assert.ok('error' in outcome, outcome.end);
  return String((outcome.error as { code?: unknown }).code);
}

async function serveTls(t: TestContext): Promise<string> {
  const ALPNProtocols = ['h2', 'http/1.1'];
  const server = createTlsServer({ ...loopbackTls, ALPNProtocols }, (socket) => {
    socket.on('error', () => {});
    assert.equal(socket.alpnProtocol, 'http/1.1');
    onRequest(socket, () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'));
  });
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('without a connection the call is unsent: refused, unknown host, no TLS', async (t) => {
  const nobody = await call(t, `http://127.0.0.1:${await unusedPort()}`);
  assert.deepEqual([nobody.end, codeIn(nobody)], ['unsent', 'ECONNREFUSED']);
  const nameless = await call(t, 'http://no-such-host.invalid');
  assert.equal(nameless.end, 'unsent');
  const plain = await serveRaw(t, () => {});
  const untrusted = await call(t, await serveTls(t));
  assert.deepEqual([untrusted.end, codeIn(untrusted)], ['unsent', 'DEPTH_ZERO_SELF_SIGNED_CERT']);
  const nonsense = await call(t, await serveTls(t), { tls: { ca: 'no certificate' } });
  assert.equal(nonsense.end, 'unsent');
  const silent = await call(t, `https://127.0.0.1:${plain.port}`, { timeoutMs: 100 });
  assert.equal(silent.end, 'unsent');
});

test('a server with a trusted certificate is called over HTTP/1.1 even if it prefers HTTP/2', async (t) => {
  const outcome = await call(t, await serveTls(t), { tls: { ca: loopbackTls.cert } });
  assert.equal(outcome.end, 'answered');
});

test('a server without TLS gets nothing of an https request', async (t) => {
  const { port } = await serveRaw(t, (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  assert.equal((await call(t, `https://127.0.0.1:${port}`)).end, 'unsent');
});

test('an invalid request is not sent', async (t) => {
  const { port, connections } = await serveRaw(t, () => {});
  for (const changes of [
    { headers: { 'x-bad': 'a\nb' } },
    { headers: { 'bad name': 'a' } },
    { path: '/a b' },
  ]) {
    const outcome = await call(t, `http://127.0.0.1:${port}`, changes);
    assert.deepEqual([outcome.end, codeIn(outcome)], ['unsent', 'UND_ERR_INVALID_ARG']);
  }
  assert.equal(connections(), 0);
});

test('a connection that closes without an answer leaves the call lost', async (t) => {
  const ways: readonly ((socket: Socket) => void)[] = [
    (socket) => socket.destroy(),
    (socket) => socket.end(),
    (socket) => onRequest(socket, () => socket.destroy()),
    (socket) => onRequest(socket, () => socket.resetAndDestroy()),
    replying(''),
    replying('HTTP/1.1 20'),
    replying('HTTP/1.1 200 OK\r\ncontent-type: application/js'),
  ];
  for (const [index, way] of ways.entries()) {
    const outcome = await callRaw(t, way);
    assert.equal(outcome.end, 'lost', String(index));
    assert.match(codeIn(outcome), /^(UND_ERR_SOCKET|ECONNRESET|EPIPE)$/);
  }
});

test('a connection that is reset immediately leaves the call unsent or lost', async (t) => {
  const outcome = await callRaw(t, (socket) => socket.resetAndDestroy());
  assert.match(outcome.end, /^(unsent|lost)$/);
});

test('an answer that is not HTTP is no answer', async (t) => {
  for (const bytes of [
    'SSH-2.0-OpenSSH_9.2\r\n\r\n',
    '\0\u0001\u0002',
    'HTTP/1.1 abc OK\r\n\r\n',
    'HTTP/1.1 200 OK\r\nno colon here\r\n\r\n',
    'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}',
    'HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n{}',
    'HTTP/2 200\r\n\r\n',
  ])
    assert.equal((await callRaw(t, replying(bytes))).end, 'lost', bytes);
});

test('an endless or too large head is no answer', async (t) => {
  const large = await callRaw(t, replying('HTTP/1.1 200 OK\r\n', `x-large: ${'a'.repeat(99_999)}\r\n`));
  assert.deepEqual([large.end, codeIn(large)], ['lost', 'UND_ERR_HEADERS_OVERFLOW']);
  const endless = await callRaw(
    t,
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      const timer = setInterval(() => socket.write('x-more: a\r\n'), 5);
      socket.on('close', () => clearInterval(timer));
    },
    { timeoutMs: 150 },
  );
  assert.equal(endless.end, 'lost');
});

test('a call times out, and a late answer is ignored', async (t) => {
  const { promise: served, resolve } = Promise.withResolvers<Socket>();
  const outcome = await callRaw(t, (socket) => onRequest(socket, () => resolve(socket)), { timeoutMs: 100 });
  assert.equal(outcome.end, 'lost');
  assert.equal((outcome as { error: Error }).error.message, 'no complete answer within 100 ms');
  const socket = await served;
  socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
  if (!socket.closed) await once(socket, 'close');
});

test('an answer that breaks off by FIN, RST or timeout is broken, not lost', async (t) => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n';
  const brokenBy = async (way: (socket: Socket) => void): Promise<string> => {
    const outcome = await callRaw(
      t,
      (socket) => onRequest(socket, () => socket.write(`${head}{"a"`, () => way(socket))),
      {
        timeoutMs: 200,
      },
    );
    assert.equal(outcome.end, 'broken');
    assert.deepEqual(
      [outcome.answer.status, outcome.answer.body.toString(), outcome.answer.isBodyCut],
      [200, '{"a"', true],
    );
    return (outcome.error as Error).name;
  };
  await brokenBy((socket) => socket.end());
  await brokenBy((socket) => setTimeout(() => socket.resetAndDestroy(), 20));
  await brokenBy(() => {});
  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';
  for (const bytes of [`${chunked}2\r\n{}\r\n`, `${chunked}zz\r\n`])
    assert.equal((await callRaw(t, replying(bytes))).end, 'broken', bytes);
});

test('a body is read up to the limit, then the connection is closed', async (t) => {
  const sizes = async (bytes: number, limit: number): Promise<readonly [number, boolean]> => {
    const head = `HTTP/1.1 200 OK\r\ncontent-length: ${bytes}\r\n\r\n`;
    const outcome = await callRaw(t, replying(head, 'x'.repeat(bytes)), { maxResponseBytes: limit });
    assert.equal(outcome.end, 'answered');
    return [outcome.answer.body.length, outcome.answer.isBodyCut];
  };
  assert.deepEqual(await sizes(100, 100), [100, false]);
  assert.deepEqual(await sizes(101, 100), [100, true]);
  assert.deepEqual(await sizes(20_000_000, 1_000_000), [1_000_000, true]);
  assert.deepEqual(await sizes(5, 0), [0, true]);
  const { promise: givenUp, resolve } = Promise.withResolvers<void>();
  const endless = await callRaw(t, (socket) =>
    onRequest(socket, () => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      const timer = setInterval(() => socket.write('64\r\n'.concat('x'.repeat(100), '\r\n')), 1);
      socket.on('close', () => {
        clearInterval(timer);
        resolve();
      });
    }),
  );
  assert.deepEqual([endless.end, endless.end === 'answered' && endless.answer.isBodyCut], ['answered', true]);
  await givenUp;
});

test('informational answers 102 and 103 are skipped, 100 and 101 end the call', async (t) => {
  const ok = 'HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\n{}';
  for (const info of ['102 Processing', '103 Early Hints']) {
    const outcome = await callRaw(t, replying(`HTTP/1.1 ${info}\r\nlink: </a>\r\n\r\n`, ok));
    assert.deepEqual([outcome.end, outcome.end === 'answered' && outcome.answer.status], ['answered', 201]);
  }
  const hint = 'HTTP/1.1 103 Early Hints\r\n\r\n';
  assert.equal((await callRaw(t, replying(hint))).end, 'lost');
  for (const info of ['100 Continue', '101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade'])
    assert.equal((await callRaw(t, replying(`HTTP/1.1 ${info}\r\n\r\n`, ok))).end, 'lost', info);
});

test('bodies that end with the connection, old HTTP and answers without a body are complete', async (t) => {
  for (const bytes of [
    'HTTP/1.1 200 OK\r\n\r\n{}',
    'HTTP/1.0 200 OK\r\n\r\n{}',
    'HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
    'HTTP/1.1 204 No Content\r\n\r\n',
  ])
    assert.equal((await callRaw(t, replying(bytes))).end, 'answered', bytes);
});

test('an answer to an earlier request is not used for this one', async (t) => {
  const ok = 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n';
  const { port } = await serveRaw(t, (socket) =>
    // The second answer comes unasked, right behind the first.
    onRequest(socket, (nth) => nth === 1 && socket.write(`${ok}"1"${ok}"X"`)),
  );
  const pool = createHttpPool({
    origin: `http://127.0.0.1:${port}`,
    connections: 1,
    timeoutMs: 500,
    tls: undefined,
  });
  t.after(() => pool.destroy());
  const ask = async (): Promise<string> => {
    const outcome = await startCall(pool, {
      method: 'POST',
      path: '/',
      headers: {},
      timeoutMs: 500,
      maxResponseBytes: 99,
      hasOwnConnection: false,
    }).ended;
    return outcome.end === 'answered' ? outcome.answer.body.toString() : outcome.end;
  };
  assert.deepEqual([await ask(), await ask()], ['"1"', '"1"']);
});

test('a withdrawn call that waits is never sent, one in progress continues', async (t) => {
  const { promise: served, resolve } = Promise.withResolvers<Socket>();
  let requests = 0;
  const { port } = await serveRaw(t, (socket) =>
    onRequest(socket, () => {
      requests++;
      resolve(socket);
    }),
  );
  const pool = createHttpPool({
    origin: `http://127.0.0.1:${port}`,
    connections: 1,
    timeoutMs: 2000,
    tls: undefined,
  });
  const start = () =>
    startCall(pool, {
      method: 'POST',
      path: '/',
      headers: {},
      timeoutMs: 2000,
      maxResponseBytes: 99,
      hasOwnConnection: false,
    });
  const [first, second] = [start(), start()];
  const socket = await served;
  first.withdraw();
  second.withdraw();
  assert.deepEqual(await second.ended, { end: 'withdrawn' });
  socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}');
  assert.equal((await first.ended).end, 'answered');
  await pool.close();
  assert.equal(requests, 1);
});

test('an aborted call is broken off, and never sent if it was not sent yet', async (t) => {
  const asked = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  let requests = 0;
  const { port } = await serveRaw(t, (socket) => {
    onRequest(socket, (nth) => {
      requests += nth;
      asked.resolve();
    });
    socket.on('close', closed.resolve);
  });
  const pool = createHttpPool({
    origin: `http://127.0.0.1:${port}`,
    connections: 1,
    timeoutMs: 5000,
    tls: undefined,
  });
  t.after(() => pool.destroy());
  const start = () =>
    startCall(pool, {
      method: 'GET',
      path: '/',
      headers: {},
      timeoutMs: 60_000,
      maxResponseBytes: 100,
      hasOwnConnection: false,
    });
  const first = start();
  const second = start();
  await asked.promise;
  second.abort(new Error('not wanted'));
  first.abort(new Error('not wanted'));
  assert.deepEqual([(await first.ended).end, (await second.ended).end], ['lost', 'withdrawn']);
  await closed.promise;
  assert.equal(requests, 1);
});

test('a process suspended while connecting sends nothing after its timeout', async (t) => {
  let requests = 0;
  const { port } = await serveRaw(t, (socket) => onRequest(socket, () => (requests++, socket.end())));
  // When it is awake again it hears of its connection first: here it never hears of its timers.
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const ending = call(t, `http://127.0.0.1:${port}`, { timeoutMs: 50 });
  const awakeAtMs = performance.now() + 100;
  while (performance.now() < awakeAtMs);
  const outcome = await ending;
  assert.deepEqual([outcome.end, requests], ['unsent', 0]);
});

test('an answer in tiny chunks needs no more memory than its body', async (t) => {
  // Each byte of the body comes in a socket chunk of its own that is mostly chunk extension.
  const count = 400;
  const piece = `1;${'x'.repeat(60_000)}\r\na\r\n`;
  const sent = Promise.withResolvers<() => void>();
  const send = async (socket: Socket): Promise<void> => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
    for (let n = 0; n < count; n += 1)
      if (!socket.write(piece)) await new Promise((resolve) => socket.once('drain', resolve));
    sent.resolve(() => socket.end('0\r\n\r\n'));
  };
  const before = arrayBufferBytes();
  const calling = callRaw(t, (socket) => onRequest(socket, () => void send(socket)), { timeoutMs: 20_000 });
  const end = await sent.promise;
  // What is still on its way through the sockets goes; what the answer keeps stays.
  let held = arrayBufferBytes() - before;
  for (let n = 0; n < 200 && held >= 4_000_000; n += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    held = arrayBufferBytes() - before;
  }
  end();
  const called = await calling;
  assert.deepEqual(
    [called.end, 'answer' in called && String(called.answer.body)],
    ['answered', 'a'.repeat(count)],
  );
  assert.ok(held < 4_000_000, `${held} bytes were held for a body of ${count} bytes`);
});

function arrayBufferBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().arrayBuffers;
}
