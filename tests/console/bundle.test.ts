import assert from 'node:assert/strict';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { buildConsole } from '../../src/console/assets/build-console.ts';

/** What the first paint of a list may load, compressed; the editor is loaded with the first payload. */
const [maxScripts, maxStyles, maxEditor] = [190_000, 20_000, 160_000];

type Chunk = Readonly<{
  file: string;
  isEntry?: boolean;
  imports?: readonly string[];
  css?: readonly string[];
}>;

let folder: string;
let manifest: Readonly<Record<string, Chunk>>;
before(async () => {
  folder = await buildConsole();
  manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8')) as typeof manifest;
});

const entries = (): readonly string[] =>
  Object.keys(manifest).filter((name) => manifest[name]?.isEntry === true);

/** The chunks that are loaded with these, before anything is shown. */
function loadedWith(names: readonly string[]): readonly Chunk[] {
  const seen = new Set<string>();
  const add = (name: string): void => {
    if (seen.has(name)) return;
    seen.add(name);
    manifest[name]?.imports?.forEach(add);
  };
  names.forEach(add);
  return [...seen].flatMap((name) => manifest[name] ?? []);
}

async function compressedSize(files: readonly string[]): Promise<number> {
  const sizes = await Promise.all([...new Set(files)].map(async (file) => stat(join(folder, `${file}.gz`))));
  return sizes.reduce((sum, { size }) => sum + size, 0);
}

test('the first paint of every page stays small, and needs no editor', async () => {
  const pages = Object.keys(manifest).filter((name) => /^features\/.*-page\.tsx$/.test(name));
  assert.ok(pages.length > 15, String(pages));
  for (const page of pages) {
    const chunks = loadedWith([...entries(), page]);
    const scripts = await compressedSize(chunks.map(({ file }) => file));
    const styles = await compressedSize(chunks.flatMap(({ css = [] }) => css));
    assert.ok(scripts <= maxScripts, `${page} loads ${scripts} bytes of scripts`);
    assert.ok(styles <= maxStyles, `${page} loads ${styles} bytes of styles`);
  }
});

test('the editor is loaded on its own', async () => {
  const editors = Object.keys(manifest).filter((name) => /components\/code\/[\w-]+\.tsx$/.test(name));
  assert.equal(editors.length, 2, String(editors));
  for (const editor of editors) {
    const page = await compressedSize(loadedWith(entries()).map(({ file }) => file));
    const both = await compressedSize(loadedWith([...entries(), editor]).map(({ file }) => file));
    assert.ok(both - page <= maxEditor, `${editor} loads ${both - page} bytes`);
  }
});
