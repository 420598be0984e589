import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/**
 * The client library runs the same statements as the server, on the pool of a service. So whatever is tested on a
 * connection of the server is tested once more on such a pool: a new test file is found by itself.
 */
const root = fileURLToPath(new URL('../../', import.meta.url));
/** A database of its own, and not a whole system. */
const opensDatabase = /createTestDatabase|startJobsApi/;
const files = await findFiles();

test('there are tests to run through the database of the client library', () => {
  assert.ok(files.length >= 19, `${files.length} files`);
});

for (const file of files)
  test(`${file} holds on the pool of a service as well`, async () => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const child = spawn(
      process.execPath,
      ['--test', '--test-isolation=none', '--test-timeout=120000', file],
      {
        cwd: root,
        env: { ...env, TEST_DATABASE: 'sdk' },
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    const exit = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const output = await text(child.stdout);
    assert.equal(await exit, 0, output);
  });

async function findFiles(): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const file of glob('src/jobs/**/*.int.test.ts', { cwd: root }))
    if (opensDatabase.test(await readFile(join(root, file), 'utf8'))) found.push(file);
  return found.toSorted();
}
