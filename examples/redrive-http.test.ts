import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { redriveAt, takenOrLater } from './redrive-http.ts';

test('a call that a stop has ended is not known to be taken, and is no error', async (t) => {
  const stopping = new AbortController();
  // Answers nothing, and is stopped while it is asked.
  const server = createServer(() => stopping.abort()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const { signal } = stopping;
  const sending = redriveAt(`http://127.0.0.1:${port}`, 'demo').enqueueJob(
    { queue: 'mail', payload: {} },
    { signal },
  );
  assert.equal(await takenOrLater(sending, signal), 'later');
});
