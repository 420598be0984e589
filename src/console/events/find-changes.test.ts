import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createChangeFinder } from './find-changes.ts';

const row = (id: string, xid: string) => ({ slice: 'dlq', id, name: 'orders', xid });
const seen = (counted: number) => ({ snapshot: 's', oldest: '1', activity: { dlq: String(counted) } });

function told(found: ReadonlyMap<string, { rows: ReadonlyMap<string, string>; isComplete: boolean }>) {
  const change = found.get('dlq');
  return change === undefined ? null : { ids: [...change.rows.keys()], isComplete: change.isComplete };
}

test('rows that account for what the statistics count are a complete change', () => {
  const finder = createChangeFinder();
  assert.equal(told(finder.add({ seen: seen(10), rows: [] }, 0)), null);
  assert.deepEqual(told(finder.add({ seen: seen(12), rows: [row('a', '5'), row('b', '5')] }, 500)), {
    ids: ['a', 'b'],
    isComplete: true,
  });
});

test('what the statistics count besides was changed elsewhere, or deleted', () => {
  const finder = createChangeFinder();
  finder.add({ seen: seen(10), rows: [] }, 0);
  assert.deepEqual(told(finder.add({ seen: seen(11), rows: [] }, 500)), { ids: [], isComplete: false });
  assert.deepEqual(told(finder.add({ seen: seen(14), rows: [row('a', '5')] }, 1000)), {
    ids: ['a'],
    isComplete: false,
  });
});

test('statistics that come later than the rows are set off against them, but not for ever', () => {
  const finder = createChangeFinder();
  finder.add({ seen: seen(10), rows: [] }, 0);
  assert.equal(told(finder.add({ seen: seen(10), rows: [row('a', '5')] }, 500))?.isComplete, true);
  assert.equal(told(finder.add({ seen: seen(11), rows: [] }, 9000)), null);
  finder.add({ seen: seen(11), rows: [row('a', '6')] }, 9500);
  assert.equal(told(finder.add({ seen: seen(12), rows: [] }, 60_000))?.isComplete, false);
});

test('a row is told once while a transaction of its time goes on', () => {
  const finder = createChangeFinder();
  finder.add({ seen: seen(10), rows: [] }, 0);
  finder.add({ seen: seen(11), rows: [row('a', '5')] }, 500);
  assert.equal(told(finder.add({ seen: seen(11), rows: [row('a', '5')] }, 1000)), null);
  assert.deepEqual(told(finder.add({ seen: seen(12), rows: [row('a', '6')] }, 1500))?.ids, ['a']);
});
