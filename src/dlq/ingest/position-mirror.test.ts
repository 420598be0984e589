import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LeasedPartition } from './partitions-table.ts';
import type { Broker } from '../../platform/broker/port.ts';
import { createPositionMirror } from './position-mirror.ts';

const leased = (id: bigint, nextOffset: bigint): LeasedPartition => ({
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
  const committed: (readonly [number, bigint])[][] = [];
  const mine = new Set<bigint>([1n, 2n]);
  const state = { nowMs: 0, isDown: false };
  const mirror = createPositionMirror({
    broker: {
      mirror: async (_group, positions) => {
        if (state.isDown) throw new Error('broker unavailable');
        committed.push(positions.map(({ partition, offset }) => [partition, offset] as const));
      },
    } as Pick<Broker, 'mirror'> as Broker,
    group: 'dlq-manager.default',
    isLeased: (id) => mine.has(id),
    monotonicMs: () => state.nowMs,
    onError: () => {},
  });
  return { committed, mine, state, mirror };
}

test('commits only the latest position of each partition, and nothing if nothing changed', async () => {
  const { committed, mirror } = createScene();
  mirror.note(leased(1n, 5n));
  mirror.note(leased(1n, 9n));
  await mirror.flush();
  await mirror.flush();
  assert.deepEqual(committed, [[[1, 9n]]]);
});

test('commits all positions again every hour, except those of partitions that moved to another replica', async () => {
  const { committed, mine, state, mirror } = createScene();
  mirror.note(leased(1n, 5n));
  mirror.note(leased(2n, 7n));
  await mirror.flush();
  mine.delete(1n);
  state.nowMs = 3_600_000;
  await mirror.flush();
  assert.deepEqual(committed.at(-1), [[2, 7n]]);
});

test('a failed commit is retried with the next flush, with newer positions if there are any', async () => {
  const { committed, state, mirror } = createScene();
  state.isDown = true;
  mirror.note(leased(1n, 5n));
  mirror.note(leased(2n, 7n));
  await mirror.flush();
  state.isDown = false;
  mirror.note(leased(1n, 6n));
  await mirror.flush();
  assert.deepEqual(committed, [
    [
      [1, 6n],
      [2, 7n],
    ],
  ]);
});
