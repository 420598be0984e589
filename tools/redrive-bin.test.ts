import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const projectRoot = fileURLToPath(new URL('../', import.meta.url));
const pinnedNode = join(projectRoot, 'node_modules', 'node');
const scratch = mkdtempSync(join(tmpdir(), 'redrive-bin-test-'));
after(() => rmSync(scratch, { recursive: true, force: true }));

const olderNode = (process.env.PATH ?? '')
  .split(delimiter)
  .map((folder) => join(folder, 'node'))
  .filter((path) => existsSync(path))
  .find(
    (path) =>
      spawnSync(path, ['-p', 'parseInt(process.versions.node) < 24'], { encoding: 'utf8' }).stdout ===
      'true\n',
  );
const needsOlderNode = { skip: olderNode === undefined && 'no Node older than 24 on the PATH' };

/** A package with our bin and an entry of its own that tells how it was called. */
function makePackage(name: string, files: Readonly<Record<string, string>>): string {
  const root = join(scratch, name);
  for (const [path, text] of Object.entries({ 'package.json': '{"type":"module"}', ...files })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  mkdirSync(join(root, 'bin'));
  copyFileSync(join(projectRoot, 'bin/redrive.js'), join(root, 'bin/redrive.js'));
  return root;
}

function pinNode(root: string): void {
  mkdirSync(join(root, 'node_modules'));
  symlinkSync(pinnedNode, join(root, 'node_modules/node'));
}

function run(node: string, root: string, ...args: readonly string[]) {
  return spawnSync(node, [join(root, 'bin/redrive.js'), ...args], { encoding: 'utf8' });
}

test('a clone runs its sources, also beside an older build, and a package what was built', () => {
  const sources = { 'src/main.ts': "const said: string = 'sources'; console.log(said);" };
  assert.equal(run(process.execPath, makePackage('clone', sources)).stdout, 'sources\n');
  const stale = makePackage('stale', { ...sources, 'dist/main.js': "console.log('stale');" });
  assert.equal(run(process.execPath, stale).stdout, 'sources\n');
  const built = makePackage('built', { 'dist/main.js': "console.log('built');" });
  assert.equal(run(process.execPath, built).stdout, 'built\n');
});

test('an older Node hands over to the pinned one, with arguments and exit code', needsOlderNode, () => {
  const root = makePackage('handed-over', {
    'src/main.ts':
      'console.log(parseInt(process.versions.node) >= 24, process.argv.slice(2).join()); process.exitCode = 78;',
  });
  pinNode(root);
  const { stdout, status } = run(olderNode ?? '', root, 'serve', '--port', '0');
  assert.equal(stdout, 'true serve,--port,0\n');
  assert.equal(status, 78);
});

test('an older Node passes a signal on and ends as the pinned one ends', needsOlderNode, async () => {
  const root = makePackage('signalled', {
    'src/main.ts': `
      const alive = setInterval(() => {}, 1000);
      process.on('SIGTERM', () => { clearInterval(alive); process.exitCode = 5; });
      console.log('ready');`,
  });
  pinNode(root);
  for (const [signal, ended] of [
    ['SIGTERM', [5, null]],
    ['SIGHUP', [null, 'SIGHUP']],
  ] as const) {
    const child = spawn(olderNode ?? '', [join(root, 'bin/redrive.js')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    child.kill(signal);
    assert.deepEqual(await once(child, 'exit'), ended);
  }
});

test('an older Node without a pinned one says what is needed', needsOlderNode, () => {
  const root = makePackage('alone', { 'src/main.ts': 'const n: number = 1;' });
  const { stderr, status } = run(olderNode ?? '', root);
  assert.match(stderr, /^redrive needs Node 24 or newer, and this is Node \d+/);
  assert.equal(status, 1);
});
