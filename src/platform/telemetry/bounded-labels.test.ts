import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBoundedLabels } from './bounded-labels.ts';

test('the first two hundred names keep their label, all others share one', () => {
  const labels = createBoundedLabels();
  const names = Array.from({ length: 300 }, (_, i) => `topic-${i}`);
  const given = names.map((name) => labels.labelOf(name));
  assert.deepEqual(given.slice(0, 200), names.slice(0, 200));
  assert.deepEqual(new Set(given.slice(200)), new Set(['other']));
  assert.equal(labels.labelOf('topic-7'), 'topic-7');
});

test('names from the configuration keep their label, whatever came before them', () => {
  const labels = createBoundedLabels({ known: ['mine'], limit: 2 });
  assert.deepEqual(
    ['a', 'b', 'mine'].map((name) => labels.labelOf(name)),
    ['a', 'other', 'mine'],
  );
});
