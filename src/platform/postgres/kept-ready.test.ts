import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep } from '../../kernel/clock.ts';
import type { Queryable } from './database.ts';
import { createKeptReady } from './kept-ready.ts';

/** A database that says whether the tables are large, and a clock that stands still. */
function createScene() {
  const scene = { areLarge: true as boolean | Error, looks: 0, ms: 0 };
  const db: Queryable = {
    async query<Row>() {
      scene.looks += 1;
      if (scene.areLarge instanceof Error) throw scene.areLarge;
      return [{ are_large: scene.areLarge }] as Row[];
    },
  };
  const kept = createKeptReady(db, { now: () => new Date(scene.ms), monotonicMs: () => scene.ms }, [
    'a',
    'b',
  ]);
  const run = async (tookMs = 1): Promise<boolean> => {
    const isPrepared = await kept.run(async (is) => {
      scene.ms += tookMs;
      return is;
    });
    await sleep(0);
    return isPrepared;
  };
  return { scene, kept, run };
}

test('it is kept ready once the tables are known to be large, and no longer when they are not', async () => {
  const { scene, run } = createScene();
  scene.areLarge = false;
  assert.equal(await run(), false);
  assert.equal(await run(), false);
  assert.equal(scene.looks, 1, 'it looks now and then');
  scene.areLarge = true;
  scene.ms += 300;
  assert.equal(await run(), false, 'nothing waits for the look');
  assert.equal(await run(), true);
  scene.areLarge = false;
  scene.ms += 4000;
  assert.equal(await run(), true);
  scene.ms += 2000;
  await run();
  assert.equal(await run(), false);
});

test('where the look fails it is not kept ready, and nobody hears of it', async () => {
  const { scene, run } = createScene();
  await run();
  assert.equal(await run(), true);
  scene.areLarge = new Error('away');
  scene.ms += 6000;
  await run();
  assert.equal(await run(), false);
});

test('after one that took long, or failed after long, it is not kept ready for a while', async () => {
  const { scene, kept, run } = createScene();
  await run();
  assert.equal(await run(600), true);
  assert.equal(await run(), false);
  scene.ms += 121_000;
  assert.equal(await run(), true);
  const failing = kept.run(async () => {
    scene.ms += 60_000;
    throw new Error('too long');
  });
  await assert.rejects(failing, /too long/);
  assert.equal(await run(), false);
});
