import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { checkDockerfile } from './image/check-dockerfile.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const scripts = ['release.ts', 'sbom.ts', 'image/lock-images.ts', 'image/dockerfile.ts'].map(
  (name) => `tools/${name}`,
);

type Clone = Readonly<{
  git: (...args: readonly string[]) => void;
  run: (...options: readonly string[]) => Readonly<{ status: number | null; stdout: string; stderr: string }>;
  read: (path: string) => string;
  write: (path: string, text: string) => void;
  has: (path: string) => boolean;
  installOffline: () => void;
}>;

/** A repository with the script. */
function makeClone(t: TestContext): Clone {
  const clone = mkdtempSync(join(tmpdir(), 'release-'));
  t.after(() => rmSync(clone, { recursive: true }));
  const identity = ['-c', 'user.name=test', '-c', 'user.email=test@example.com'];
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(clone, path)), { recursive: true });
    writeFileSync(join(clone, path), text);
  };
  for (const path of scripts) {
    mkdirSync(dirname(join(clone, path)), { recursive: true });
    cpSync(join(root, path), join(clone, path));
  }
  return {
    git: (...args) => void execFileSync('git', [...identity, ...args], { cwd: clone }),
    run: (...options) =>
      spawnSync(process.execPath, ['tools/release.ts', ...options], { cwd: clone, encoding: 'utf8' }),
    read: (path) => readFileSync(join(clone, path), 'utf8'),
    write,
    has: (path) => existsSync(join(clone, path)),
    installOffline: () =>
      void execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund'], { cwd: clone }),
  };
}

function writeManifests({ write }: Clone, version: string, client: string): void {
  const common = { type: 'module', homepage: 'https://example.com' };
  const writeJson = (path: string, content: object): void => write(path, JSON.stringify(content));
  const dependencies = { '@redrive/client': version };
  writeJson('package.json', { name: 'redrive', version, ...common, dependencies, workspaces: ['sdk'] });
  writeJson('sdk/package.json', { name: '@redrive/client', version });
  writeJson('packages/client/package.json', {
    name: '@redrive/client',
    version: client,
    ...common,
    dependencies: { direct: '^1.9.0' },
  });
}

/** Adds what the client needs, directly and below that, and what it does not need. */
function lockPackages({ read, write }: Clone, direct: string): void {
  const lock = JSON.parse(read('package-lock.json')) as { packages: Record<string, object> };
  lock.packages = {
    ...lock.packages,
    'node_modules/direct': { version: direct, dependencies: { below: '^1.0.0', nested: '^2.0.0' } },
    'node_modules/direct/node_modules/nested': { version: '2.0.1' },
    'node_modules/below': { version: '1.0.5' },
    'node_modules/other': { version: '9.0.0' },
  };
  write('package-lock.json', JSON.stringify(lock));
}

test('a release is refused on a dirty tree, without a section of the changelog, for two versions, and with a wrong option', (t) => {
  const clone = makeClone(t);
  const { git, run, write } = clone;
  const dryRun = () => run('--dry-run');
  writeManifests(clone, '1.2.3', '1.2.3');
  write('CHANGELOG.md', '## [Unreleased]\n\n## [1x2.3]\n');
  git('init', '-q');
  git('add', '-A');
  git('commit', '-q', '-m', 'first');
  const unnamed = dryRun();
  assert.deepEqual([unnamed.status, unnamed.stderr], [1, 'CHANGELOG.md has no section for 1.2.3\n']);
  write('CHANGELOG.md', '## [1.2.3] 2026-11-18\n');
  const dirty = dryRun();
  assert.equal(dirty.status, 1);
  assert.match(dirty.stderr, /^uncommitted changes:\n ?M CHANGELOG\.md\n$/);
  git('commit', '-q', '-am', 'second');
  const clean = dryRun();
  assert.deepEqual([clean.status, clean.stderr], [0, '']);
  assert.match(
    clean.stdout,
    /would write release\/: both packages, sbom\.cdx\.json, sbom-client\.cdx\.json, SHA256SUMS, provenance\.json/,
  );
  const misspelt = run('--dryrun');
  assert.equal(misspelt.status, 1);
  assert.match(misspelt.stderr, /Unknown option '--dryrun'/);
  writeManifests(clone, '1.2.3', '1.2.2');
  git('commit', '-q', '-am', 'third');
  assert.match(dryRun().stderr, /^@redrive\/client and the dependency on it must have the version 1\.2\.3$/m);
});

type Sbom = Readonly<{
  metadata: Readonly<{ component: Readonly<{ name: string; version: string }> }>;
  components: readonly Readonly<{ 'bom-ref': string }>[];
}>;

test('a release has both packages and the bill of materials of each', (t) => {
  const clone = makeClone(t);
  const { git, run, read, write } = clone;
  writeManifests(clone, '1.2.3', '1.2.3');
  write('.gitignore', 'node_modules/\nrelease/\n');
  write('CHANGELOG.md', '## [1.2.3] 2026-11-18\n');
  clone.installOffline();
  lockPackages(clone, '1.10.0');
  git('init', '-q');
  git('add', '-A');
  git('commit', '-q', '-m', 'first');
  const released = run();
  assert.equal(released.status, 0, released.stderr);
  const names = released.stdout.split('\n').map((line) => line.slice(66));
  const sboms = ['sbom-client.cdx.json', 'sbom.cdx.json'];
  assert.deepEqual(names, ['redrive-1.2.3.tgz', 'redrive-client-1.2.3.tgz', ...sboms, '']);
  const [client, server] = sboms.map((name) => JSON.parse(read(`release/${name}`)) as Sbom);
  assert.ok(client !== undefined && server !== undefined);
  assert.deepEqual(
    [client, server].map(({ metadata: { component } }) => [component.name, component.version]),
    [
      ['@redrive/client', '1.2.3'],
      ['redrive', '1.2.3'],
    ],
  );
  const refs = client.components.map((component) => component['bom-ref']);
  assert.deepEqual(refs.toSorted(), ['below@1.0.5', 'direct@1.10.0', 'nested@2.0.1']);

  lockPackages(clone, '2.0.0');
  git('commit', '-q', '-am', 'second');
  const excluded = run();
  assert.notEqual(excluded.status, 0);
  assert.match(excluded.stderr, /invalid: direct@2\.0\.0/);
});

const node = 'node:24-trixie-slim';
const distroless = 'gcr.io/distroless/nodejs24-debian13:nonroot';
const digestOf = (digit: string): string => `sha256:${digit.repeat(64)}`;
const imageOptions = (...images: readonly string[]): readonly string[] =>
  images.flatMap((image) => ['--image', image]);

test('digests go to the Dockerfile and to images.lock, and replace those of the last release', (t) => {
  const { run, read, write, has } = makeClone(t);
  const original = readFileSync(join(root, 'deploy/Dockerfile'), 'utf8').replaceAll(/@sha256:\w+/g, '');
  write('deploy/Dockerfile', original);
  const options = (one: string, two: string): readonly string[] =>
    imageOptions(`${distroless}=${digestOf(two)}`, `${node}=${digestOf(one)}`);
  const tried = run('--dry-run', ...options('a', 'b'));
  assert.match(tried.stdout, /^would write deploy\/images\.lock and deploy\/Dockerfile:\nnode:24/);
  assert.deepEqual([has('deploy/images.lock'), read('deploy/Dockerfile')], [false, original]);
  for (const [one, two] of [
    ['a', 'b'],
    ['c', 'd'],
  ] as const) {
    const locked = run(...options(one, two));
    assert.deepEqual([locked.status, locked.stderr], [0, '']);
    const images = [`${node}@${digestOf(one)}`, `${distroless}@${digestOf(two)}`];
    assert.equal(read('deploy/images.lock'), `${images.join('\n')}\n`);
    const expected = original
      .replace(`=${node}\n`, `=${images[0]}\n`)
      .replace(`=${distroless}\n`, `=${images[1]}\n`);
    assert.equal(read('deploy/Dockerfile'), expected);
    assert.deepEqual(checkDockerfile(expected, images), []);
    assert.equal(checkDockerfile(original, images).length, 2);
  }
});

test('images that the Dockerfile does not name, digests that are none, and missing images are refused', (t) => {
  const { run, read, write, has } = makeClone(t);
  const original = readFileSync(join(root, 'deploy/Dockerfile'), 'utf8');
  write('deploy/Dockerfile', original);
  const good = [`${node}=${digestOf('a')}`, `${distroless}=${digestOf('b')}`];
  const refused = (problem: RegExp, ...images: readonly string[]): void => {
    const { status, stderr, stdout } = run(...imageOptions(...images));
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, problem);
    assert.deepEqual([has('deploy/images.lock'), read('deploy/Dockerfile')], [false, original]);
  };
  refused(
    /^deploy\/Dockerfile does not name node:24, but node:24-trixie-slim and gcr\.io/,
    ...good,
    'node:24=x',
  );
  refused(/^node:24-trixie-slim is given twice$/m, ...good, ...good);
  refused(/^gcr\.io\S+ has no digest: add --image gcr\.io/m, good[0] ?? '');
  for (const digest of [
    '',
    '=',
    `=sha256:${'a'.repeat(63)}`,
    `=${'a'.repeat(64)}`,
    `=sha256:${'A'.repeat(64)}`,
    `=${digestOf('a')}=`,
  ])
    refused(/^node:24-trixie-slim needs a digest/m, `${node}${digest}`, good[1] ?? '');
});
