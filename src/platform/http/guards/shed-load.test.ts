import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { createTestServer } from '../../../../tests/support/test-server.ts';
import { eventually } from '../../../../tests/support/eventually.ts';

const block = (ms: number): void => {
  const until = performance.now() + ms;
  while (performance.now() < until);
};

test('an overloaded process rejects requests, answers probes, and recovers', async (t) => {
  const { server, logged } = createTestServer({ limits: { maxDelayMs: 30, delaySampleMs: 60 } });
  const { app } = server;
  await app.ready();
  t.after(() => app.close());
  const ask = (url: string) => app.inject(url);
  assert.equal((await ask('/api/v1/things')).statusCode, 200);

  for (let round = 0; round < 12; round += 1) {
    block(100);
    await setImmediate();
  }
  const refused = await ask('/api/v1/things');
  assert.equal(refused.statusCode, 503);
  assert.equal(refused.headers['retry-after'], '5');
  assert.match(refused.body, /the server is overloaded; try again/);
  assert.equal((await ask('/healthz')).statusCode, 200);
  assert.equal((await ask('/metrics')).statusCode, 200);

  await eventually(async () => assert.equal((await ask('/api/v1/things')).statusCode, 200));
  const said = new Set(logged().map(({ msg }) => msg));
  assert.ok(said.has('rejecting requests: the process is overloaded'));
  assert.ok(said.has('accepting requests again'));
});

test('one long pause is no overload', async (t) => {
  const { app } = createTestServer({ limits: { maxDelayMs: 30, delaySampleMs: 60 } }).server;
  await app.ready();
  t.after(() => app.close());
  block(300);
  // The sample that was due meanwhile is taken.
  await setTimeout(1);
  assert.equal((await app.inject('/api/v1/things')).statusCode, 200);
});
