import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createByteBudget } from './byte-budget.ts';

const budgetOf = (bytes: number, waitMs: number | null = 5) =>
  createByteBudget({ bytes, waitMs, maxWaiting: 2 });

describe('A budget of bytes', () => {
  it('gives room as long as there is some, and again what was given back', async () => {
    const budget = budgetOf(10);
    const first = await budget.reserve(6);
    assert.ok(first);
    assert.equal(await budget.reserve(5), null);
    first.resize(5);
    assert.ok(await budget.reserve(5));
    first.release();
    first.release();
    assert.ok(await budget.reserve(5));
    assert.equal(await budget.reserve(1), null);
  });

  it('counts nothing that is told of a share after its release', async () => {
    const budget = budgetOf(10);
    const gone = budget.take(4);
    gone.release();
    assert.equal(gone.resize(100), true);
    assert.ok(await budget.reserve(10));
  });

  it('tells a share that grows whether there is room beside the others', () => {
    const budget = budgetOf(10);
    const first = budget.take(0);
    assert.equal(first.resize(100), true, 'it is alone');
    assert.equal(first.resize(6), true);
    const second = budget.take(0);
    assert.deepEqual([second.resize(4), second.resize(5)], [true, false]);
  });

  it('gives more than all of it to one that is alone', async () => {
    const budget = budgetOf(10);
    const large = await budget.reserve(1000);
    assert.ok(large);
    assert.equal(await budget.reserve(1), null);
    large.release();
    assert.ok(await budget.reserve(1));
  });

  it('lets those that wait in by their order, and refuses more than may wait', async () => {
    const budget = budgetOf(10, null);
    const holder = budget.take(8);
    const order: string[] = [];
    const large = budget.reserve(9).then((share) => (order.push('large'), share));
    const small = budget.reserve(1).then((share) => (order.push('small'), share));
    assert.equal(await budget.reserve(1), null);
    assert.deepEqual(order, []);
    holder.release();
    await Promise.all([large, small]);
    assert.deepEqual(order, ['large', 'small']);
  });

  it('lets the next one in where the one before it has given up', async () => {
    const budget = createByteBudget({ bytes: 10, waitMs: 20, maxWaiting: 10 });
    budget.take(8);
    const large = budget.reserve(9);
    const small = budget.reserve(2);
    assert.equal(await large, null);
    assert.ok(await small);
  });
});
