import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { test, type TestContext } from 'node:test';
import { runCli } from '../run-cli.ts';

const none = { failed: 0, skipped: 0, excluded: 0, remaining: 0, exclusions: [] };

async function listenOn(t: TestContext, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test('retry-all fails if messages are left over, but not for those of another redrive', async (t) => {
  let counts: object = none;
  const server = createServer((request, response) => {
    const body =
      request.method === 'POST'
        ? { retried: 1, message: '1 message retried', ...none, ...counts }
        : { messages: [], pagination: { total_count: 1 } };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const url = await listenOn(t, server);
  const exitCode = async (given: object): Promise<number> => {
    counts = given;
    const screen = { isTTY: false, columns: 80, write: () => {} };
    const streams = { env: {}, stdin: new PassThrough(), stdout: screen, stderr: screen };
    return runCli(['dlq', 'retry-all', 'orders.v1', '--yes', '--url', url], streams);
  };
  const excludedFor = (reason: string) => ({
    excluded: 6,
    exclusions: [{ reason, topic: 'orders.v1', count: 6 }],
  });
  assert.equal(await exitCode(excludedFor('in_another_redrive')), 0);
  assert.equal(await exitCode(excludedFor('target_missing')), 1);
  assert.equal(await exitCode({ ...excludedFor('in_another_redrive'), failed: 1 }), 1);
});

test(
  'retry-all ends with its answer, also while a count of the progress is not answered',
  { timeout: 15_000 },
  async (t) => {
    const retry = Promise.withResolvers<ServerResponse>();
    const countClosed = Promise.withResolvers<void>();
    let counts = 0;
    const server = createServer((request, response) => {
      const answer = (to: ServerResponse, body: unknown): unknown =>
        to.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      if (request.method === 'POST') return retry.resolve(response);
      counts += 1;
      if (counts === 1) return answer(response, { messages: [], pagination: { total_count: 1 } });
      response.once('close', countClosed.resolve);
      const retried = { retried: 1, ...none, message: 'retried 1 message' };
      return void retry.promise.then((waiting) => answer(waiting, retried));
    });
    const url = await listenOn(t, server);
    const screen = { isTTY: true, columns: 80, write: () => {} };
    const args = ['dlq', 'retry-all', 'orders.v1', '--yes', '--url', url];
    assert.equal(
      await runCli(args, { env: {}, stdin: new PassThrough(), stdout: screen, stderr: screen }),
      0,
    );
    await countClosed.promise;
  },
);
