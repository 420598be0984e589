import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { persist } from './persist.ts';

const dataError = Object.assign(new Error('invalid input'), { code: '22P05' });
const deadlock = Object.assign(new Error('deadlock'), { code: '40P01' });
const never = new AbortController().signal;

test('whatever items are poisoned, they and only they are stored as culprits, and all are stored once', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 60 }), async (poisoned) => {
      const items = poisoned.map((isBad, index) => ({ isBad, index }));
      const stored: number[] = [];
      const culprits: number[] = [];
      await persist(items, {
        store: async (part) => {
          if (part.some(({ isBad }) => isBad)) throw dataError;
          stored.push(...part.map(({ index }) => index));
        },
        storeCulprit: async ({ index }) => void culprits.push(index),
        until: never,
      });
      assert.deepEqual(
        culprits,
        items.filter(({ isBad }) => isBad).map(({ index }) => index),
      );
      assert.deepEqual(
        [...stored, ...culprits].toSorted((a, b) => a - b),
        items.map(({ index }) => index),
      );
    }),
  );
});

test('parts are stored in order', async () => {
  const order: number[] = [];
  await persist([1, 2, 3, 4, 5, 6, 7], {
    store: async (part) => {
      if (part.includes(4)) throw dataError;
      order.push(...part);
    },
    storeCulprit: async (item) => void order.push(item),
    until: never,
  });
  assert.deepEqual(order, [1, 2, 3, 4, 5, 6, 7]);
});

test('a deadlock is tried again, any other fault is thrown', async () => {
  let tries = 0;
  await persist([1], {
    store: async () => {
      tries += 1;
      if (tries < 3) throw deadlock;
    },
    storeCulprit: () => Promise.reject(new Error('not poisoned')),
    until: never,
  });
  assert.equal(tries, 3);
  const broken = persist([1], {
    store: () => Promise.reject(Object.assign(new Error('no table'), { code: '42P01' })),
    storeCulprit: async () => {},
    until: never,
  });
  await assert.rejects(broken, /no table/);
});

test('trying again ends when the time is up', async () => {
  const over = new AbortController();
  over.abort();
  const given = persist([1], {
    store: () => Promise.reject(deadlock),
    storeCulprit: async () => {},
    until: over.signal,
  });
  await assert.rejects(given, /deadlock/);
});

test('one that takes too long again and again keeps nobody else, and comes out as the error', async () => {
  const tooLong = Object.assign(new Error('canceling statement due to statement timeout'), { code: '57014' });
  const stored: number[] = [];
  const all = persist(
    Array.from({ length: 20 }, (_, i) => i),
    {
      store: async (part) => {
        if (part.includes(7)) throw tooLong;
        stored.push(...part);
      },
      storeCulprit: () => Promise.reject(new Error('it is not poisoned')),
      until: never,
      isolatesSlow: true,
    },
  );
  await assert.rejects(all, tooLong);
  assert.equal(stored.length, 19);
});
