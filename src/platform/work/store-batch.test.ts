import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { storeBatch } from './store-batch.ts';

const dataError = Object.assign(new Error('invalid input'), { code: '22P05' });
const deadlock = Object.assign(new Error('deadlock'), { code: '40P01' });
const never = new AbortController().signal;

test('bad items and only they go to storeBad, and every item is stored once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 60 }), async (bad) => {
      const items = bad.map((isBad, index) => ({ isBad, index }));
      const stored: number[] = [];
      const badOnes: number[] = [];
      await storeBatch(items, {
        store: async (part) => {
          if (part.some(({ isBad }) => isBad)) throw dataError;
          stored.push(...part.map(({ index }) => index));
        },
        storeBad: async ({ index }) => void badOnes.push(index),
        until: never,
      });
      assert.deepEqual(
        badOnes,
        items.filter(({ isBad }) => isBad).map(({ index }) => index),
      );
      assert.deepEqual(
        [...stored, ...badOnes].toSorted((a, b) => a - b),
        items.map(({ index }) => index),
      );
    }),
  );
});

test('parts are stored in order', async () => {
  const order: number[] = [];
  await storeBatch([1, 2, 3, 4, 5, 6, 7], {
    store: async (part) => {
      if (part.includes(4)) throw dataError;
      order.push(...part);
    },
    storeBad: async (item) => void order.push(item),
    until: never,
  });
  assert.deepEqual(order, [1, 2, 3, 4, 5, 6, 7]);
});

test('a deadlock is retried, any other error is thrown', async () => {
  let tries = 0;
  await storeBatch([1], {
    store: async () => {
      tries += 1;
      if (tries < 3) throw deadlock;
    },
    storeBad: () => Promise.reject(new Error('the item is not bad')),
    until: never,
  });
  assert.equal(tries, 3);
  const broken = storeBatch([1], {
    store: () => Promise.reject(Object.assign(new Error('no table'), { code: '42P01' })),
    storeBad: async () => {},
    until: never,
  });
  await assert.rejects(broken, /no table/);
});

test('retrying ends when the signal aborts', async () => {
  const over = new AbortController();
  over.abort();
  const given = storeBatch([1], {
    store: () => Promise.reject(deadlock),
    storeBad: async () => {},
    until: over.signal,
  });
  await assert.rejects(given, /deadlock/);
});

test('an item that times out repeatedly does not block others, and rejects with its timeout', async () => {
  const tooLong = Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' });
  const stored: number[] = [];
  const all = storeBatch(
    Array.from({ length: 20 }, (_, i) => i),
    {
      store: async (part) => {
        if (part.includes(7)) throw tooLong;
        stored.push(...part);
      },
      storeBad: () => Promise.reject(new Error('the item is not bad')),
      until: never,
      isolatesSlow: true,
    },
  );
  await assert.rejects(all, tooLong);
  assert.equal(stored.length, 19);
});

test('the caller may decide what is bad data and what is retried', async () => {
  const errors = ['P0001', '08006', '40001'].map((code) => Object.assign(new Error(code), { code }));
  const [bad, unclear, again] = errors;
  const run = async (failures: unknown[]): Promise<readonly string[]> => {
    const seen: string[] = [];
    await storeBatch([1], {
      async store() {
        const error = failures.shift();
        seen.push('store');
        if (error !== undefined) throw error;
      },
      storeBad: async () => void seen.push('bad'),
      isBadData: (error) => error === bad,
      isRetryable: (error) => error === again,
      until: never,
    });
    return seen;
  };
  assert.deepEqual(await run([again, bad]), ['store', 'store', 'bad']);
  await assert.rejects(run([unclear]), unclear);
});
