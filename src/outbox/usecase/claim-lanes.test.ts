import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClaimer } from './claim-lanes.ts';
import type { ClaimOptions, ClaimResult } from './ports.ts';

type LaneName = 'free' | 'keyed';

/** A claimer over lanes that are full or empty as the scene says, and that take as long as it says. */
function createScene(full: Readonly<Record<LaneName, boolean>>) {
  const scene = {
    ms: 0,
    full: { ...full },
    /** Of a claim that begins at the beginning; the others take no time. */
    lookBackMs: { free: 0, keyed: 0, alone: 0 },
    claims: [] as string[],
  };
  let last = 0n;
  const claim = async ({ lane, after }: ClaimOptions): Promise<ClaimResult> => {
    scene.claims.push(`${lane} after ${after?.id ?? 'nothing'}`);
    if (after === null) scene.ms += scene.lookBackMs[lane];
    const isFull = lane !== 'alone' && scene.full[lane];
    last += 1n;
    return { orders: [], last: isFull ? { nextAttemptAt: '', id: last } : null, isFull, crowded: [] };
  };
  const claimer = createClaimer(
    {
      store: { claim, claimProbe: async () => null, holdBack: async () => {} },
      clock: { now: () => new Date(0), monotonicMs: () => scene.ms },
    },
    {
      name: 'broker',
      policy: {
        idempotency: 'none',
        dedupWindowMs: 0,
        retryMax: 8,
        backoff: { initialMs: 1, maxMs: 1, jitter: 0 },
        maxAgeMs: 1,
      },
    },
  );
  /** What was asked of the lane since the last time, one claim after another. */
  const asked = async (lane: LaneName, claims: number): Promise<readonly string[]> => {
    scene.claims = [];
    for (let i = 0; i < claims; i += 1) await claimer.claim(32, () => {});
    return scene.claims.filter((one) => one.startsWith(lane)).map((one) => one.slice(lane.length + 1));
  };
  return { scene, claimer, asked };
}

const isLookBack = (one: string): boolean => one === 'after nothing';

test('a claim begins where the one before it ended, and once a second at the beginning', async () => {
  const { scene, asked } = createScene({ free: true, keyed: true });
  const [first, ...others] = await asked('free', 5);
  assert.deepEqual([first, others.some(isLookBack)], ['after nothing', false]);
  scene.ms = 999;
  assert.equal((await asked('free', 3)).some(isLookBack), false);
  scene.ms = 1000;
  assert.deepEqual((await asked('free', 3)).map(isLookBack), [true, false, false]);
});

test('of the claims that run at once one looks back', async () => {
  const { scene, claimer, asked } = createScene({ free: true, keyed: false });
  await asked('free', 1);
  scene.ms = 1000;
  scene.claims = [];
  await Promise.all(Array.from({ length: 4 }, () => claimer.claim(32, () => {})));
  const free = scene.claims.filter((one) => one.startsWith('free'));
  assert.deepEqual([free.length, free.filter((one) => one === 'free after nothing').length], [4, 1]);
});

test('a lane that seems empty is looked at from the beginning', async () => {
  const { scene, asked } = createScene({ free: true, keyed: false });
  await asked('free', 2);
  scene.full.free = false;
  assert.deepEqual((await asked('free', 3)).map(isLookBack), [false, true, true]);
});

test('where looking back takes long it is done less often, even when the lane seems empty', async () => {
  const { scene, asked } = createScene({ free: true, keyed: false });
  scene.lookBackMs.free = 500;
  await asked('free', 1);
  scene.full.free = false;
  const begin = scene.ms;
  scene.ms = begin + 9000;
  assert.equal((await asked('free', 3)).some(isLookBack), false);
  scene.ms = begin + 10_000;
  assert.deepEqual((await asked('free', 2)).map(isLookBack), [true, false]);
});

test('the lane of keys is looked at from the beginning every second, however long that takes', async () => {
  const { scene, asked } = createScene({ free: false, keyed: true });
  scene.lookBackMs.keyed = 500;
  await asked('keyed', 1);
  scene.ms += 1000;
  assert.deepEqual((await asked('keyed', 1)).map(isLookBack), [true]);
});
