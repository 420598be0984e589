import assert from 'node:assert/strict';
import { getEventListeners, once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { runCli } from '../run-cli.ts';

/** `--watch` against a server that comes and goes. */

type Watched = Readonly<{
  /** Resolves once the output matches as often. */
  until: (pattern: RegExp, times?: number) => Promise<void>;
  stop: () => Promise<number>;
  ended: Promise<number>;
  /** How many wait for Ctrl-C. */
  waiters: () => number;
  said: Readonly<{ out: string; err: string }>;
}>;

const queues = [
  { queue: 'mail', counts: {}, has_target: false, unresolved: 0, lag_seconds: null, paused: false },
];

async function startServer(port: number, answers: () => number = () => 200): Promise<Server> {
  const server = createServer((_request, response) => {
    const status = answers();
    const error = { code: 'SYS_TEST', message: 'no', details: [] };
    const body =
      status === 200 ? { queues: queues.map((one) => ({ ...one, target_down: null })) } : { error };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function watchQueues(
  server: Server,
  stdout: Readonly<{ isTTY?: boolean; columns?: number; rows?: number }>,
  ...more: readonly string[]
): Watched {
  const said = { out: '', err: '' };
  const waiting: (() => void)[] = [];
  const into = (stream: 'out' | 'err') => ({
    write(data: string | Uint8Array): void {
      said[stream] += data.toString();
      for (const check of waiting) check();
    },
  });
  const stopping = new AbortController();
  const { port } = server.address() as AddressInfo;
  const code = runCli(['jobs', 'queues', '--watch', '1', '--url', `http://127.0.0.1:${port}`, ...more], {
    env: { NO_COLOR: '1' },
    stdin: new PassThrough(),
    stdout: { ...stdout, ...into('out') },
    stderr: into('err'),
    interrupted: stopping.signal,
  });
  return {
    said,
    ended: code,
    waiters: () => getEventListeners(stopping.signal, 'abort').length,
    until(pattern, times = 1) {
      return new Promise((resolve) => {
        const check = (): void => {
          const found = `${said.out}\n${said.err}`.match(new RegExp(pattern, 'g'))?.length ?? 0;
          if (found >= times) resolve();
        };
        waiting.push(check);
        check();
      });
    },
    async stop() {
      stopping.abort();
      return code;
    },
  };
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

test('on a terminal the result is redrawn in place, and Ctrl-C is a success', async (t: TestContext) => {
  const server = await startServer(0);
  t.after(() => close(server));
  const watched = watchQueues(server, { isTTY: true, columns: 80, rows: 24 });
  await watched.until(/mail/, 2);
  assert.equal(await watched.stop(), 0);
  const frames = watched.said.out.split('\u001b[H').slice(1);
  assert.equal(frames[0], '\u001b[2J');
  for (const frame of frames.slice(1)) {
    const readable = frame.replaceAll('\u001b', '<ESC>');
    assert.match(readable, /^every 1 s, last at \d\d:\d\d:\d\d, Ctrl-C to stop<ESC>\[K\r\n/);
    assert.match(readable, /\r\nmail {2}.*<ESC>\[K<ESC>\[J(\r\n)?$/);
    assert.doesNotMatch(frame.replaceAll('\r\n', ''), /\n/);
  }
});

test('a terminal with few rows shows the beginning and says how much is missing', async (t) => {
  const server = await startServer(0);
  t.after(() => close(server));
  const watched = watchQueues(server, { isTTY: true, columns: 80, rows: 4 });
  await watched.until(/… 1 more line/);
  assert.equal(await watched.stop(), 0);
});

test('elsewhere snapshots are appended below their times', async (t) => {
  const server = await startServer(0);
  t.after(() => close(server));
  const watched = watchQueues(server, {});
  await watched.until(/mail/, 2);
  assert.equal(await watched.stop(), 0);
  assert.match(watched.said.out, /^--- 20\S+Z\nQUEUE .*\nmail .*\n\n--- 20\S+Z\nQUEUE .*\nmail .*\n/);
});

test('what waits for Ctrl-C does not grow with the number of snapshots', async (t) => {
  const server = await startServer(0);
  t.after(() => close(server));
  const watched = watchQueues(server, {});
  await watched.until(/mail/, 2);
  const early = watched.waiters();
  await watched.until(/mail/, 4);
  const late = watched.waiters();
  await watched.stop();
  assert.ok(late <= early, `${early} waiters became ${late}`);
});

test('with --json every snapshot is one line', async (t) => {
  const server = await startServer(0);
  t.after(() => close(server));
  const watched = watchQueues(server, { isTTY: true, columns: 80, rows: 24 }, '--json');
  await watched.until(/mail/, 2);
  assert.equal(await watched.stop(), 0);
  for (const line of watched.said.out.trimEnd().split('\n'))
    assert.equal((JSON.parse(line) as { queues: readonly unknown[] }).queues.length, 1);
});

for (const isTTY of [true, false])
  test(`a server that goes away is waited for, ${isTTY ? 'on' : 'off'} a terminal`, async () => {
    const server = await startServer(0);
    const { port } = server.address() as AddressInfo;
    const watched = watchQueues(server, isTTY ? { isTTY } : {});
    await watched.until(/mail/);
    await close(server);
    await watched.until(/nothing listens at/);
    const shown = watched.said.out.match(/mail/g)?.length ?? 0;
    const again = await startServer(port);
    await watched.until(/mail/, shown + 1);
    if (!isTTY) await watched.until(/available again after \d+ s/);
    assert.equal(await watched.stop(), 0);
    await close(again);
    if (isTTY)
      assert.match(watched.said.out, /unavailable since \d\d:\d\d:\d\d, trying again: nothing listens/);
    else assert.equal(watched.said.err.match(/nothing listens/g)?.length, 1);
  });

test('a server that was never there, or that refuses, ends the command', async () => {
  const server = await startServer(0);
  const gone = watchQueues(server, {});
  await close(server);
  assert.equal(await gone.ended, 69);
  const statuses = [200, 503, 503, 404];
  const refusing = await startServer(0, () => statuses.shift() ?? 404);
  const watched = watchQueues(refusing, {});
  assert.equal(await watched.ended, 1);
  // Once for both answers 503, once for the 404.
  assert.equal(watched.said.err.match(/SYS_TEST/g)?.length, 2);
  await close(refusing);
});
