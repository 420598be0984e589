import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { test } from 'node:test';

const ups = globSync('src/**/migrations/*.up.sql', { cwd: new URL('..', import.meta.url) });

test('the migrations of each slice are numbered from 1, each number once', () => {
  const byFolder = Map.groupBy(ups, (path) => dirname(path));
  assert.ok(byFolder.size >= 5, 'no migrations were found');
  for (const [folder, paths] of byFolder) {
    const names = paths.map((path) => basename(path)).toSorted();
    const wrong = names.filter((name, index) => Number.parseInt(name, 10) !== index + 1);
    assert.deepEqual(wrong, [], folder);
  }
});
