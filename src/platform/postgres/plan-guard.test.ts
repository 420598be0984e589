import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPlanGuard } from './plan-guard.ts';

test('a statement is prepared, but not for two minutes after a run that took long or failed after long', async () => {
  let nowMs = 0;
  const guard = createPlanGuard({ now: () => new Date(nowMs), monotonicMs: () => nowMs });
  const run = (tookMs = 1): Promise<boolean> =>
    guard.run(async (isPrepared) => {
      nowMs += tookMs;
      return isPrepared;
    });
  assert.equal(await run(), true);
  assert.equal(await run(600), true);
  assert.equal(await run(), false);
  nowMs += 121_000;
  assert.equal(await run(), true);
  const failing = guard.run(async () => {
    nowMs += 60_000;
    throw new Error('too long');
  });
  await assert.rejects(failing, /too long/);
  assert.equal(await run(600), false);
  nowMs += 121_000;
  assert.equal(await run(), true);
});
