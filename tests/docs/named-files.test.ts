import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** The walks of docs/architecture.md name files; a bare name is in the folder of the file before it, or below it. */

const root = fileURLToPath(new URL('../../', import.meta.url));

test('every file that the walks of the architecture name exists, and each walk passes it once', () => {
  const document = readFileSync(`${root}docs/architecture.md`, 'utf8');
  const walks = document.split(/^## /m).filter((section) => /^An? .*'s way\n/.test(section));
  assert.equal(walks.length, 4);
  for (const walk of walks) {
    const files = filesOf(walk);
    assert.deepEqual(
      files.filter((file) => !existsSync(`${root}src/${file}`)),
      [],
    );
    assert.equal(new Set(files).size, files.length);
  }
});

function filesOf(walk: string): readonly string[] {
  let folder = '';
  return [...walk.matchAll(/`([\w/-]+\.ts)`/g)].map(([, name = '']) => {
    const isWhole = existsSync(`${root}src/${name.split('/')[0]}`) && name.includes('/');
    const file = isWhole ? name : `${folder}/${name}`;
    folder = posix.dirname(file);
    return file;
  });
}
