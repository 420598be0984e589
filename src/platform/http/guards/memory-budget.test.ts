import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { Type } from 'typebox';
import type { HttpLimits } from '../create-app.ts';
import { createTestServer, talk } from '../../../../tests/support/test-server.ts';
import type { HttpServer } from '../http-server.ts';

const MIB = 1024 * 1024;
/** More than the buffers of a connection hold. */
const answerBytes = 16 * MIB;

type Large = Readonly<{
  server: HttpServer;
  url: string;
  /** How many handlers have begun, and how many ran at once at most. */
  begun(): number;
  running(): number;
  most(): number;
  /** Ends of requests for an answer that comes late: each lets one go on. */
  late: (() => void)[];
  /** Waits until so many clients of late answers have left. */
  allGone(count: number): Promise<void>;
}>;

/** A server with routes whose answers and bodies are large. */
async function startLarge(t: TestContext, limits: Partial<HttpLimits> = {}): Promise<Large> {
  const { server } = createTestServer({ limits: { memoryWaitMs: 20, ...limits } });
  let begun = 0;
  let running = 0;
  let most = 0;
  let gone = 0;
  const late: (() => void)[] = [];
  server.addRoutes('slow', (app) => {
    app.get(
      '/slow',
      { config: { access: 'authenticated' } },
      () => new Promise((resolve) => late.push(() => resolve({}))),
    );
  });
  server.addRoutes('large', (app) => {
    app.get('/api/v1/late', { config: { access: 'authenticated' } }, async (_request, reply) => {
      reply.raw.once('close', () => (gone += 1));
      await new Promise<void>((resolve) => late.push(resolve));
      return 'x'.repeat(MIB);
    });
    app.get(
      '/api/v1/large',
      { config: { access: 'authenticated', answerBytes } },
      async (_request, reply) => {
        begun += 1;
        running += 1;
        most = Math.max(most, running);
        reply.raw.once('close', () => (running -= 1));
        return reply.type('text/plain').send('x'.repeat(answerBytes));
      },
    );
    app.get('/api/v1/told', { config: { access: 'authenticated' } }, async (request, reply) => {
      await request.reserveAnswer(answerBytes);
      return reply.send({ small: true });
    });
    app.post(
      '/api/v1/large',
      { config: { access: 'authenticated' }, schema: { body: Type.Object({ text: Type.String() }) } },
      ({ body }) => body.text.length,
    );
  });
  await server.start();
  t.after(() => server.stop(AbortSignal.timeout(0)));
  return {
    server,
    url: server.address()?.url ?? '',
    begun: () => begun,
    running: () => running,
    most: () => most,
    late,
    allGone: (count) => until(() => gone >= count),
  };
}

const get = (path: string, more = ''): string => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${more}\r\n`;

/** A client that has asked for the large answer, and does not read it. */
async function slowReader(t: TestContext, { url }: Large): Promise<Socket> {
  const { port } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => {});
  t.after(() => socket.destroy());
  socket.pause();
  socket.write(get('/api/v1/large'));
  await once(socket, 'connect');
  return socket;
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve));
}

const untilBegun = (large: Large, count: number): Promise<void> => until(() => large.begun() >= count);

describe('Requests on one connection', () => {
  it('are served in order, each after the answer before it was read', async (t) => {
    const large = await startLarge(t);
    const many = get('/api/v1/large').repeat(4) + get('/healthz', 'connection: close\r\n');
    const received = await talk(large.server, many);
    assert.equal(received.split('HTTP/1.1 200 ').length - 1, 5);
    assert.ok(received.endsWith('{"status":"ok"}'));
    assert.equal(large.begun(), 4);
    assert.equal(large.most(), 1);
  });

  it('do not start until the answer before them was read', async (t) => {
    const large = await startLarge(t);
    const reader = await slowReader(t, large);
    reader.write(get('/api/v1/large').repeat(100));
    await untilBegun(large, 1);
    for (let i = 0; i < 20; i += 1) assert.equal((await fetch(`${large.url}/healthz`)).status, 200);
    assert.equal(large.begun(), 1);
  });

  it('above the limit close the connection after the last one that waited', async (t) => {
    const { server } = await startLarge(t);
    const received = await talk(server, get('/healthz').repeat(1000));
    const answers = received.split('HTTP/1.1 200 ').length - 1;
    assert.ok(answers >= 200 && answers < 1000, String(answers));
  });

  it('are not read while one is served', async (t) => {
    const { server, url, late } = await startLarge(t);
    let seen = 0;
    server.app.server.on('request', () => (seen += 1));
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    t.after(() => socket.destroy());
    socket.on('error', () => {});
    socket.resume();
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.write(get('/slow') + get('/healthz').repeat(100_000));
    await until(() => late.length === 1 && seen > 256);
    for (let i = 0; i < 50; i += 1) assert.equal((await fetch(`${url}/healthz`)).status, 200);
    late[0]?.();
    await closed;
    assert.ok(seen < 10_000, String(seen));
  });

  it('with bodies are served', async (t) => {
    const { server } = await startLarge(t);
    const body = JSON.stringify({ text: 'x'.repeat(300_000) });
    const post = `POST /api/v1/large HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n`;
    const received = await talk(
      server,
      `${post}\r\n${body}`.repeat(5) + `${post}connection: close\r\n\r\n${body}`,
    );
    assert.equal(received.split('300000').length - 1, 6);
  });
});

describe('Memory of requests in progress', () => {
  it('is bounded: above it a request gets 503 with Retry-After, and probes still work', async (t) => {
    const large = await startLarge(t);
    const readers = [await slowReader(t, large), await slowReader(t, large)];
    await untilBegun(large, 2);
    for (const path of ['/api/v1/large', '/api/v1/told']) {
      const refused = await fetch(`${large.url}${path}`);
      assert.equal(refused.status, 503);
      assert.equal(refused.headers.get('retry-after'), '1');
      const { error } = (await refused.json()) as { error: { code: string; message: string } };
      assert.equal(error.code, 'SYS_LARGE_UNAVAILABLE');
      assert.match(error.message, /busy/);
    }
    assert.equal((await fetch(`${large.url}/healthz`)).status, 200);
    for (const reader of readers) reader.destroy();
    for (;;) if ((await fetch(`${large.url}/api/v1/told`)).status === 200) break;
  });

  it('makes concurrent requests wait until memory is free', async (t) => {
    const large = await startLarge(t, { memoryWaitMs: 60_000 });
    const answers = await Promise.all(
      Array.from({ length: 6 }, async () => {
        const answer = await fetch(`${large.url}/api/v1/large`);
        return { status: answer.status, bytes: (await answer.arrayBuffer()).byteLength };
      }),
    );
    assert.deepEqual(
      answers,
      Array.from({ length: 6 }, () => ({ status: 200, bytes: answerBytes })),
    );
    assert.ok(large.most() <= 2, String(large.most()));
  });

  it('counts bodies as they arrive: one without free memory gets 503', async (t) => {
    const large = await startLarge(t, { inProgressBytes: 1, bodyBytes: 200_000 });
    const { port } = new URL(large.url);
    const head = 'POST /api/v1/large HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n';
    const begin = async (bytes: number): Promise<Socket> => {
      const socket = connect(Number(port), '127.0.0.1').setEncoding('latin1');
      t.after(() => socket.destroy());
      socket.write(`${head}content-length: 190000\r\n\r\n"${'x'.repeat(bytes)}`);
      await once(socket, 'connect');
      return socket;
    };
    for (let i = 0; i < 3; i += 1) await begin(0);
    const announced = await fetch(`${large.url}/api/v1/large`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'x'.repeat(150_000) }),
    });
    assert.equal(announced.status, 200, 'what was only announced takes no room');
    const sockets = [await begin(180_000), await begin(180_000), await begin(180_000)];
    const [answer] = (await Promise.race(sockets.map((socket) => once(socket, 'data')))) as [string];
    assert.match(answer, /^HTTP\/1\.1 503 /);
    assert.match(answer, /retry-after: 1/);
  });

  it('is released when a client does not read its answer', async (t) => {
    const large = await startLarge(t, { readAnswerMs: 20, readBytesPerMs: 1e9 });
    const reader = await slowReader(t, large);
    await untilBegun(large, 1);
    await until(() => large.running() === 0);
    const closed = once(reader, 'close');
    reader.resume();
    await closed;
    assert.ok(reader.bytesRead < answerBytes);
  });

  it('is released when clients disconnect before their answers', async (t) => {
    const large = await startLarge(t);
    for (let i = 1; i <= 40; i += 1) {
      const left = new AbortController();
      const answer = fetch(`${large.url}/api/v1/late`, { signal: left.signal }).catch(() => {});
      await until(() => large.late.length === i);
      left.abort();
      await answer;
    }
    await large.allGone(40);
    for (const goOn of large.late) goOn();
    const body = JSON.stringify({ text: 'x'.repeat(300_000) });
    const headers = { 'content-type': 'application/json' };
    assert.equal((await fetch(`${large.url}/api/v1/large`, { method: 'POST', headers, body })).status, 200);
    assert.equal((await fetch(`${large.url}/api/v1/large`)).status, 200);
  });

  it('does not affect small requests and large bodies while a large answer is read', async (t) => {
    const large = await startLarge(t, { inProgressBytes: MIB });
    await slowReader(t, large);
    await untilBegun(large, 1);
    assert.equal((await fetch(`${large.url}/api/v1/told`)).status, 503);
    for (const length of [10, 300_000]) {
      const response = await fetch(`${large.url}/api/v1/large`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ text: 'x'.repeat(length) }),
      });
      assert.equal(response.status, 200, String(length));
    }
  });
});
