import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bossOneByOne, openBoss, startBoss } from '../../bench/jobs-support.ts';
import { createTestDatabase } from '../support/database.ts';

/** A figure of a peer is only worth publishing if the peer runs as its makers would run it. */

test('for latency pg-boss is notified of a job: it does not wait for its next poll', async () => {
  const database = await createTestDatabase();
  const boss = await openBoss(database.url, 'bench', { notifies: true });
  try {
    let handled = Promise.withResolvers<void>();
    const running = await startBoss(boss, 'bench', { ...bossOneByOne, handler: () => handled.resolve() });
    const began = performance.now();
    for (let n = 0; n < 3; n += 1) {
      handled = Promise.withResolvers();
      await boss.send('bench', { n });
      await handled.promise;
    }
    assert.ok(performance.now() - began < (bossOneByOne.pollSeconds * 1000) / 2);
    await running.stop();
  } finally {
    await boss.stop({ graceful: false });
    await database.drop();
  }
});
