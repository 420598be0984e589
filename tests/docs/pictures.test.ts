import assert from 'node:assert/strict';
import { globSync, readFileSync, statSync } from 'node:fs';
import { posix } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** Pictures of the console: every one that a document shows exists, in both themes, and a clone stays small. */

const root = fileURLToPath(new URL('../../', import.meta.url));
const documents = ['README.md', ...globSync('docs/**/*.md', { cwd: root })];
const pictures = globSync('docs/images/*.png', { cwd: root });

const shown = documents.flatMap((file) =>
  [...readFileSync(`${root}${file}`, 'utf8').matchAll(/(?:src|srcset)="([^"]+)"/g)].map(([, name = '']) =>
    posix.join(posix.dirname(file), name),
  ),
);

test('documents show the pictures that there are, light and dark, and all of them', () => {
  assert.ok(shown.length >= 10, `only ${shown.length}`);
  assert.deepEqual([...new Set(shown)].toSorted(), pictures.toSorted());
  for (const file of shown.filter((each) => each.endsWith('-light.png')))
    assert.ok(shown.includes(file.replace('-light.png', '-dark.png')), file);
});

test('a picture has at most 150 kB, and all have at most 1 MB', () => {
  const sizes = pictures.map((file) => [file, statSync(`${root}${file}`).size] as const);
  assert.deepEqual(
    sizes.filter(([, bytes]) => bytes > 150_000),
    [],
  );
  assert.ok(sizes.reduce((sum, [, bytes]) => sum + bytes, 0) <= 1_000_000);
});

test('every picture says in words what it shows', () => {
  for (const file of documents)
    for (const [tag] of readFileSync(`${root}${file}`, 'utf8').matchAll(/<img [^>]*>/g))
      assert.match(tag, /alt="[^"]{20,}"/, `${file}: ${tag}`);
});
