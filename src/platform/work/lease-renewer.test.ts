import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lease } from '../../kernel/lease.ts';
import { createLeaseRenewer } from './lease-renewer.ts';

type Item = { id: string; lease: Lease };

const leaseMs = 30_000;

/** Leases that end at the given times, a clock that the test sets, and what was asked of the database. */
function createScene(endsAtMs: Readonly<Record<string, number>>) {
  const scene = { nowMs: 0, isDown: false, locked: [] as string[], lost: [] as string[] };
  const items: Item[] = Object.entries(endsAtMs).map(([id, ends]) => ({
    id,
    lease: { owner: 'me', epoch: 1n, endsAtMs: ends },
  }));
  const asked: string[] = [];
  const lost: string[] = [];
  const renewer = createLeaseRenewer<Item>({
    clock: { now: () => new Date(0), monotonicMs: () => scene.nowMs },
    leaseMs,
    leased: () => items,
    async renew(due, ms) {
      asked.push(due.map(({ id }) => id).join(' '));
      if (scene.isDown) throw new Error('the database is unavailable');
      const isLocked = ({ id }: Item): boolean => scene.locked.includes(id);
      const isLost = ({ id }: Item): boolean => scene.lost.includes(id);
      return {
        renewed: due.filter((item) => !isLocked(item) && !isLost(item)),
        locked: due.filter(isLocked),
        lost: due.filter(isLost),
        endsAtMs: scene.nowMs + ms,
      };
    },
    onRenewed(result) {
      for (const item of result.renewed) item.lease = { ...item.lease, endsAtMs: result.endsAtMs };
      lost.push(...result.lost.map(({ id }) => id));
    },
  });
  return { scene, renewer, asked, lost };
}

test('leases are renewed when a third is over, together with those that are due soon', async () => {
  const { scene, renewer, asked } = createScene({ a: 30_000, b: 32_000, c: 40_000 });
  scene.nowMs = 10_000;
  await renewer.renewDue();
  assert.deepEqual(asked, []);
  scene.nowMs = 10_001;
  await renewer.renewDue();
  await renewer.renewDue();
  assert.deepEqual(asked, ['a b']);
});

test('a locked row is tried again at once, without those that have just been renewed', async () => {
  const { scene, renewer, asked } = createScene({ a: 15_000, b: 15_000 });
  scene.locked = ['a'];
  await renewer.renewDue();
  await renewer.renewDue();
  assert.deepEqual(asked, ['a b', 'a']);
});

test('everything is renewed on request, and the slice learns what was lost', async () => {
  const { scene, renewer, asked, lost } = createScene({ a: 30_000, b: 30_000 });
  scene.lost = ['b'];
  renewer.checkAll();
  await renewer.renewDue();
  await renewer.renewDue();
  assert.deepEqual([asked, lost], [['a b'], ['b']]);
});

test('after a failure it waits a thirtieth of a lease', async () => {
  const { scene, renewer, asked } = createScene({ a: 15_000 });
  scene.isDown = true;
  await assert.rejects(renewer.renewDue());
  scene.nowMs = 999;
  await renewer.renewDue();
  scene.nowMs = 1000;
  await assert.rejects(renewer.renewDue());
  assert.equal(asked.length, 2);
});
