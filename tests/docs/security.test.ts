import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** docs/security.md says of every point whether it is met, where, and which test shows it. */

const root = fileURLToPath(new URL('../../', import.meta.url));
const text = readFileSync(`${root}docs/security.md`, 'utf8');
const rows = [...text.matchAll(/^\| (\d+\.\d+\.\d+.*?) \| .+ \| (.*?) \| (.*?) \| (.*?) \|$/gm)].map(
  ([, points = '', state = '', where = '', tests = '']) => ({ points, state, where, tests }),
);

test('every chapter is there, and every row has a state', () => {
  const chapters = [...text.matchAll(/^## V(\d+) /gm)].map(([, number]) => Number(number));
  assert.deepEqual(chapters, [3, 4, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16]);
  assert.ok(rows.length > 60, String(rows.length));
  for (const { points, state } of rows) assert.match(state, /^(met|partly|gap|yours|none)$/, points);
});

test('what a row names exists, and what is met names a place or a test', () => {
  for (const { points, state, where, tests } of rows) {
    for (const [, path = ''] of `${where} ${tests}`.matchAll(
      /`((?:src|tests|tools|deploy|docs|console)\/[^`]+)`/g,
    ))
      assert.ok(existsSync(root + path), `${points}: there is no ${path}`);
    for (const [, path = ''] of tests.matchAll(/`([^`]+)`/g)) assert.match(path, /\.test\.ts$/, points);
    if (state === 'met') assert.ok(where !== '' || tests !== '', `${points} is met by nothing`);
  }
});
