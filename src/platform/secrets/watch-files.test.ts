import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { watchFiles } from './watch-files.ts';

const never = 2_000_000_000;

/** A folder `now` that is a link to another one, as Kubernetes mounts secrets. */
function linkedFolder(): Readonly<{ root: string; file: string; swap(to: string): void }> {
  const root = mkdtempSync(join(tmpdir(), 'watch-files-'));
  for (const name of ['one', 'two']) mkdirSync(join(root, name));
  symlinkSync('one', join(root, 'now'));
  return {
    root,
    file: join(root, 'now', 'secret'),
    swap(to) {
      symlinkSync(to, join(root, 'next'));
      renameSync(join(root, 'next'), join(root, 'now'));
    },
  };
}

test('a file that is replaced is looked at without waiting for the timer', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'watch-files-'));
  const file = join(folder, 'secret');
  writeFileSync(file, 'one');
  const looked = Promise.withResolvers<void>();
  const watched = watchFiles([file], looked.resolve, never);
  t.after(() => {
    watched.close();
    rmSync(folder, { recursive: true });
  });
  // Held by nothing else: neither the watch nor the timer keeps a process alive.
  const alive = setTimeout(() => looked.reject(new Error('nobody looked')), 20_000);
  writeFileSync(`${file}.new`, 'two');
  renameSync(`${file}.new`, file);
  await looked.promise;
  clearTimeout(alive);
});

test('a folder that is swapped as a whole reports no event, and is found by the timer', async (t) => {
  const { root, file, swap } = linkedFolder();
  let looks = 0;
  const looked = Promise.withResolvers<void>();
  const watched = watchFiles([file], () => ((looks += 1) >= 2 ? looked.resolve() : undefined), 20);
  t.after(() => {
    watched.close();
    rmSync(root, { recursive: true });
  });
  const alive = setTimeout(() => looked.reject(new Error('nobody looked')), 20_000);
  swap('two');
  await looked.promise;
  clearTimeout(alive);
  watched.close();
});

test('a folder that does not exist yet is no error', () => {
  watchFiles(['/nonexistent/folder/secret'], () => {}, never).close();
});

test('nobody looks after close', async () => {
  let looks = 0;
  const watched = watchFiles(['/nonexistent/secret'], () => (looks += 1), 1);
  watched.close();
  await new Promise((resolve) => void setTimeout(resolve, 20));
  assert.equal(looks, 0);
});
