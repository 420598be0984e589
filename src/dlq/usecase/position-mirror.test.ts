import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HeldPartition, Source } from './ports.ts';
import { createPositionMirror } from './position-mirror.ts';

const held = (id: bigint, nextOffset: bigint): HeldPartition => ({
  id,
  topic: 'orders.dlq.v1',
  topicId: '00000000-0000-4000-8000-000000000000',
  partition: Number(id),
  nextOffset,
  highOffset: nextOffset,
  backfillUntil: null,
  lease: { owner: 'me', epoch: 1n, endsAtMs: 0 },
});

function createScene() {
  const shown: (readonly [number, bigint])[][] = [];
  const mine = new Set<bigint>([1n, 2n]);
  const state = { nowMs: 0, isAway: false };
  const mirror = createPositionMirror({
    source: {
      mirror: async (_group, positions) => {
        if (state.isAway) throw new Error('away');
        shown.push(positions.map(({ partition, offset }) => [partition, offset] as const));
      },
    } as Pick<Source, 'mirror'> as Source,
    group: 'dlq-manager.default',
    isHeld: (id) => mine.has(id),
    monotonicMs: () => state.nowMs,
    onError: () => {},
  });
  return { shown, mine, state, mirror };
}

test('only the latest position of each partition is shown, and nothing when nothing changed', async () => {
  const { shown, mirror } = createScene();
  mirror.note(held(1n, 5n));
  mirror.note(held(1n, 9n));
  await mirror.flush();
  await mirror.flush();
  assert.deepEqual(shown, [[[1, 9n]]]);
});

test('positions are shown again each hour, but never those of partitions that moved to another replica', async () => {
  const { shown, mine, state, mirror } = createScene();
  mirror.note(held(1n, 5n));
  mirror.note(held(2n, 7n));
  await mirror.flush();
  mine.delete(1n);
  state.nowMs = 3_600_000;
  await mirror.flush();
  assert.deepEqual(shown.at(-1), [[2, 7n]]);
});

test('what could not be shown is shown with the next flush, unless there is something newer', async () => {
  const { shown, state, mirror } = createScene();
  state.isAway = true;
  mirror.note(held(1n, 5n));
  mirror.note(held(2n, 7n));
  await mirror.flush();
  state.isAway = false;
  mirror.note(held(1n, 6n));
  await mirror.flush();
  assert.deepEqual(shown, [
    [
      [1, 6n],
      [2, 7n],
    ],
  ]);
});
