import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { runCli } from '../run-cli.ts';

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
      const none = { failed: 0, skipped: 0, excluded: 0, remaining: 0 };
      const retried = { retried: 1, ...none, exclusions: [], message: 'retried 1 message' };
      return void retry.promise.then((waiting) => answer(waiting, retried));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close().closeAllConnections());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const screen = { isTTY: true, columns: 80, write: () => {} };
    const args = ['dlq', 'retry-all', 'orders.v1', '--yes', '--url', url];
    assert.equal(
      await runCli(args, { env: {}, stdin: new PassThrough(), stdout: screen, stderr: screen }),
      0,
    );
    await countClosed.promise;
  },
);
