import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sparkline } from './sparkline.ts';

test('bars are as high as their share of the largest, and only a zero is blank', () => {
  assert.equal(sparkline([0, 1, 50, 100, 1000]), ' ▁▁▁█');
  assert.equal(sparkline([8, 7, 6, 5, 4, 3, 2, 1]), '█▇▆▅▄▃▂▁');
  assert.equal(sparkline([0, 0]), '  ');
  assert.equal(sparkline([]), '');
});
