import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { assertApproved } from '../support/approved.ts';

/** What services build upon: a name or a type of the SDK that comes, goes or changes changes the approved list. */

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const sdk = join(root, 'src/sdk/index.ts');

test('the names and types of the SDK are the approved ones', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-sdk-'));
  try {
    await assertApproved(new URL('snapshots/sdk.txt', import.meta.url), await declarationsIn(folder));
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('a service that uses the SDK loads nothing of the server', async () => {
  const listModules = `
    import { registerHooks } from 'node:module';
    registerHooks({ load: (url, context, next) => (console.log(url), next(url, context)) });
    await import(${JSON.stringify(sdk)});`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', listModules]);
  const loaded = stdout.split('\n').filter((url) => url.startsWith('file:'));
  const own = loaded.filter((url) => !url.includes('/node_modules/'));
  const allowed =
    /\/src\/((sdk|kernel|platform|\w+\/domain|outbox\/accept|jobs\/(enqueue|run)|saga\/(define|start))\/|jobs\/[^/]+$)/;
  const foreign = own.filter((url) => !allowed.test(url));
  assert.deepEqual(foreign, []);
  assert.ok(own.some((url) => url.endsWith('/src/sdk/outbox.ts')));
  const packages = loaded.flatMap((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []);
  assert.deepEqual([...new Set(packages)].sort(), ['@opentelemetry/api', 'canonicalize']);
});

/** The declarations that the package is published with, without their comments. */
async function declarationsIn(folder: string): Promise<string> {
  const options = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      noCheck: true,
      declaration: true,
      emitDeclarationOnly: true,
      removeComments: true,
      rootDir: join(root, 'src'),
      outDir: folder,
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
    },
    files: [sdk],
    include: [],
  };
  const project = join(folder, 'tsconfig.json');
  await writeFile(project, JSON.stringify(options));
  await run(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '--project', project]);
  const files = (await readdir(join(folder, 'sdk'), { recursive: true }))
    .filter((file) => file.endsWith('.d.ts'))
    .toSorted();
  const texts = await Promise.all(
    files.map(async (file) => `${file}\n${await readFile(join(folder, 'sdk', file), 'utf8')}`),
  );
  return texts.join('\n');
}
