import assert from 'node:assert/strict';
import { setImmediate as nextTick } from 'node:timers/promises';
import { test } from 'node:test';
import type { Clock } from '../../kernel/clock.ts';
import { createBatchWriter, type BatchWriterOptions } from './batch-writer.ts';

type Item = Readonly<{ id: number; bytes: number; leaseEndsAtMs: number }>;
type Written = Readonly<{ ids: readonly number[]; end(error?: Error): void }>;

const leaseMs = 3000;

/** A writer over a database that finishes a batch only when the test says so, and a clock that the test sets. */
function createScene(options: Partial<BatchWriterOptions<Item, string>> = {}) {
  const writes: Written[] = [];
  const renewals: (readonly number[])[] = [];
  const time = { nowMs: 0 };
  const locked: unknown[] = [];
  const clock: Clock = { now: () => new Date(0), monotonicMs: () => time.nowMs };
  const writer = createBatchWriter<Item, string>({
    clock,
    writeBatch: (items) =>
      new Promise((resolve, reject) => {
        const ids = items.map(({ id }) => id);
        const end = (error?: Error): void =>
          error === undefined ? resolve(ids.map((id) => `stored ${id}`)) : reject(error);
        writes.push({ ids, end });
      }),
    maxItems: 500,
    maxWriters: 2,
    itemsPerWriter: 64,
    leases: {
      leaseMs,
      leaseOf: ({ leaseEndsAtMs }) => ({ owner: 'worker-1', epoch: 1n, endsAtMs: leaseEndsAtMs }),
      async renew(items) {
        renewals.push(items.map(({ id }) => id));
        return { locked };
      },
    },
    ...options,
  });
  let made = 0;
  const write = (count: number, bytes = 0): readonly Promise<string>[] =>
    Array.from({ length: count }, () => {
      made += 1;
      return writer.write({ id: made, bytes, leaseEndsAtMs: time.nowMs + leaseMs });
    });
  return { writer, writes, write, time, renewals, locked, sizes: () => writes.map(({ ids }) => ids.length) };
}

test('items of one moment are written together, and items that come meanwhile gather', async () => {
  const { writes, write, sizes } = createScene();
  const first = write(10);
  await nextTick();
  void write(20);
  void write(30);
  await nextTick();
  assert.deepEqual(sizes(), [10]);
  writes[0]?.end();
  assert.deepEqual(
    await Promise.all(first),
    writes[0]?.ids.map((id) => `stored ${id}`),
  );
  await nextTick();
  assert.deepEqual(sizes(), [10, 50]);
});

test('a second writer starts when many items wait, and never a third', async () => {
  const { writes, write, sizes } = createScene();
  void write(1);
  await nextTick();
  void write(63);
  await nextTick();
  assert.deepEqual(sizes(), [1]);
  void write(1);
  await nextTick();
  assert.deepEqual(sizes(), [1, 64]);
  void write(1200);
  await nextTick();
  assert.deepEqual(sizes(), [1, 64]);
  writes[0]?.end();
  writes[1]?.end();
  await nextTick();
  assert.deepEqual(sizes(), [1, 64, 500, 500]);
  writes[2]?.end();
  await nextTick();
  assert.deepEqual(sizes(), [1, 64, 500, 500, 200]);
});

test('a slow batch does not keep the next one waiting', async () => {
  const { write, sizes, time } = createScene();
  void write(1);
  await nextTick();
  time.nowMs = 1000;
  void write(1);
  await nextTick();
  assert.deepEqual(sizes(), [1]);
  time.nowMs = 1001;
  void write(1);
  await nextTick();
  assert.deepEqual(sizes(), [1, 2]);
});

test('a batch is bounded by its bytes, and a larger item is written by itself', async () => {
  const { writes, write, sizes } = createScene({
    maxBytes: 4,
    bytesOf: ({ bytes }) => bytes,
    maxItems: 3,
    maxWriters: 1,
  });
  for (const bytes of [1, 3, 1, 9, 0, 0, 0, 0]) void write(1, bytes);
  await nextTick();
  for (let batch = 0; batch < 5; batch += 1) {
    writes[batch]?.end();
    await nextTick();
  }
  assert.deepEqual(sizes(), [2, 1, 1, 3, 1]);
});

test('a batch that cannot be written rejects its own items, and the next ones are written', async () => {
  const { writes, write, sizes } = createScene();
  const [one] = write(1);
  await nextTick();
  const [two] = write(1);
  writes[0]?.end(new Error('no database'));
  await assert.rejects(one ?? Promise.resolve(), /no database/);
  await nextTick();
  writes[1]?.end();
  assert.equal(await two, 'stored 2');
  const [three] = write(1);
  await nextTick();
  writes[2]?.end();
  assert.deepEqual([await three, sizes()], ['stored 3', [1, 1, 1]]);
});

test('it is empty when the last batch is written, and says so', async () => {
  const idle: boolean[] = [];
  const { writer, writes, write } = createScene({ onIdle: () => idle.push(writer.isEmpty()) });
  assert.ok(writer.isEmpty());
  void write(2);
  assert.deepEqual([writer.isEmpty(), writer.waitingCount()], [false, 2]);
  await nextTick();
  assert.deepEqual([writer.isEmpty(), writer.waitingCount()], [false, 0]);
  writes[0]?.end();
  await nextTick();
  assert.deepEqual(idle, [true]);
});

test('leases of unwritten items are renewed when less than half is left, waiting or being written', async () => {
  const { writer, write, time, renewals } = createScene();
  void write(1);
  await nextTick();
  void write(1);
  time.nowMs = leaseMs / 2;
  await writer.renewLeases();
  assert.deepEqual(renewals, []);
  time.nowMs += 1;
  await writer.renewLeases();
  await writer.renewLeases();
  assert.deepEqual(renewals, [[1, 2]]);
  time.nowMs += leaseMs / 3;
  await writer.renewLeases();
  assert.deepEqual(renewals, [
    [1, 2],
    [1, 2],
  ]);
});

test('the lease of a locked row is renewed again soon', async () => {
  const { writer, write, time, renewals, locked } = createScene();
  locked.push(1);
  void write(1);
  time.nowMs = leaseMs - 1;
  await writer.renewLeases();
  time.nowMs += leaseMs / 10;
  await writer.renewLeases();
  assert.equal(renewals.length, 2);
});

test('a batch that could not be written for twenty leases is left to the reaper', async () => {
  const { writer, write, time, renewals } = createScene();
  void write(1);
  await nextTick();
  time.nowMs = 20 * leaseMs - 1;
  await writer.renewLeases();
  assert.equal(renewals.length, 1);
  time.nowMs += leaseMs;
  await writer.renewLeases();
  assert.equal(renewals.length, 1);
});
