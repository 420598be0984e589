import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClaimResult } from './claim-orders.ts';
import { createOrderClaimer, type OrderClaimerDeps } from './order-claimer.ts';

type Kind = 'unordered' | 'ordered';

/** A claimer over a fake claim: the scene says whether there are due orders, and how long a claim takes. */
function createScene(full: Readonly<Record<Kind, boolean>>) {
  const scene = {
    ms: 0,
    full: { ...full },
    /** How long a claim from the start takes; others take no time. */
    fromStartMs: { unordered: 0, ordered: 0, solo: 0 },
    claims: [] as string[],
  };
  let last = 0n;
  const claim: OrderClaimerDeps['claim'] = async ({ kind, after }): Promise<ClaimResult> => {
    scene.claims.push(`${kind} after ${after?.id ?? 'nothing'}`);
    if (after === null) scene.ms += scene.fromStartMs[kind];
    const isFull = kind !== 'solo' && scene.full[kind];
    last += 1n;
    return { orders: [], last: isFull ? { nextAttemptAt: '', id: last } : null, isFull, crowdedKeys: [] };
  };
  const clock = { now: () => new Date(0), monotonicMs: () => scene.ms };
  const claimer = createOrderClaimer({ clock, claim, block: async () => {} });
  /** The claims of one kind in this many rounds. */
  const claims = async (kind: Kind, rounds: number): Promise<readonly string[]> => {
    scene.claims = [];
    for (let i = 0; i < rounds; i += 1) await claimer.claim({ limit: 32, bytes: 1e6 }, () => {});
    return scene.claims.filter((one) => one.startsWith(kind)).map((one) => one.slice(kind.length + 1));
  };
  return { scene, claimer, claims };
}

const isFromStart = (one: string): boolean => one === 'after nothing';

test('a claim starts where the previous one stopped, and once a second from the start', async () => {
  const { scene, claims } = createScene({ unordered: true, ordered: true });
  const [first, ...others] = await claims('unordered', 5);
  assert.deepEqual([first, others.some(isFromStart)], ['after nothing', false]);
  scene.ms = 999;
  assert.equal((await claims('unordered', 3)).some(isFromStart), false);
  scene.ms = 1000;
  assert.deepEqual((await claims('unordered', 3)).map(isFromStart), [true, false, false]);
});

test('of parallel claims, one starts from the start', async () => {
  const { scene, claimer, claims } = createScene({ unordered: true, ordered: false });
  await claims('unordered', 1);
  scene.ms = 1000;
  scene.claims = [];
  await Promise.all(Array.from({ length: 4 }, () => claimer.claim({ limit: 32, bytes: 1e6 }, () => {})));
  const unordered = scene.claims.filter((one) => one.startsWith('unordered'));
  assert.deepEqual(
    [unordered.length, unordered.filter((one) => one === 'unordered after nothing').length],
    [4, 1],
  );
});

test('a claim that finds nothing after the cursor starts from the start at once', async () => {
  const { scene, claims } = createScene({ unordered: true, ordered: false });
  await claims('unordered', 2);
  scene.full.unordered = false;
  assert.deepEqual((await claims('unordered', 2)).map(isFromStart), [false, true, true]);
});

test('slow claims from the start are made less often, even when nothing is found after the cursor', async () => {
  const { scene, claims } = createScene({ unordered: true, ordered: false });
  scene.fromStartMs.unordered = 500;
  await claims('unordered', 1);
  scene.full.unordered = false;
  const begin = scene.ms;
  scene.ms = begin + 9000;
  assert.equal((await claims('unordered', 3)).some(isFromStart), false);
  scene.ms = begin + 10_000;
  assert.deepEqual((await claims('unordered', 2)).map(isFromStart), [true, false]);
});

test('orders with an ordering key are claimed from the start every second, however slow that is', async () => {
  const { scene, claims } = createScene({ unordered: false, ordered: true });
  scene.fromStartMs.ordered = 500;
  await claims('ordered', 1);
  scene.ms += 1000;
  assert.deepEqual((await claims('ordered', 1)).map(isFromStart), [true]);
});

test('due orders that are locked do not make it claim again at once', async () => {
  // From the start it sees a full batch of locked orders, and nothing after them.
  const claim: OrderClaimerDeps['claim'] = async ({ kind, after }) => {
    const isFull = kind === 'ordered' && after === null;
    return { orders: [], last: isFull ? { nextAttemptAt: '', id: 1n } : null, isFull, crowdedKeys: [] };
  };
  const clock = { now: () => new Date(0), monotonicMs: () => 0 };
  const claimer = createOrderClaimer({ clock, claim, block: async () => {} });
  const round = () => claimer.claim({ limit: 1, bytes: 1e6 }, () => {});
  assert.equal(await round(), true);
  assert.equal(await round(), false);
});
