import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('release.ts', import.meta.url));

test('a release has both packages, and is refused on a dirty tree, without a section of the changelog, or for two versions', (t) => {
  const clone = mkdtempSync(join(tmpdir(), 'release-'));
  t.after(() => rmSync(clone, { recursive: true }));
  const git = (...args: readonly string[]): void =>
    void execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.com', ...args], {
      cwd: clone,
    });
  const run = (...options: readonly string[]) =>
    spawnSync(process.execPath, ['release.ts', ...options], { cwd: clone, encoding: 'utf8' });
  const dryRun = () => run('--dry-run');
  const writeManifests = (version: string, client: string): void => {
    const common = { type: 'module', homepage: 'https://example.com' };
    const dependencies = { '@redrive/client': version };
    const write = (path: string, manifest: object): void =>
      writeFileSync(join(clone, path), JSON.stringify(manifest));
    write('package.json', {
      name: 'redrive',
      version,
      ...common,
      dependencies,
      workspaces: ['packages/client'],
    });
    write('packages/client/package.json', { name: '@redrive/client', version: client, ...common });
  };
  mkdirSync(join(clone, 'packages/client'), { recursive: true });
  cpSync(script, join(clone, 'release.ts'));
  writeManifests('1.2.3', '1.2.3');
  writeFileSync(join(clone, '.gitignore'), 'node_modules/\nrelease/\n');
  writeFileSync(join(clone, 'CHANGELOG.md'), '## [Unreleased]\n\n## [1x2.3]\n');
  git('init', '-q');
  git('add', '-A');
  git('commit', '-q', '-m', 'first');
  const unnamed = dryRun();
  assert.deepEqual([unnamed.status, unnamed.stderr], [1, 'CHANGELOG.md has no section for 1.2.3\n']);
  writeFileSync(join(clone, 'CHANGELOG.md'), '## [1.2.3] 2026-11-18\n');
  const dirty = dryRun();
  assert.equal(dirty.status, 1);
  assert.match(dirty.stderr, /^uncommitted changes:\n ?M CHANGELOG\.md\n$/);
  git('commit', '-q', '-am', 'second');
  const clean = dryRun();
  assert.deepEqual([clean.status, clean.stderr], [0, '']);
  assert.match(
    clean.stdout,
    /would write release\/: both packages, sbom\.cdx\.json, SHA256SUMS, provenance\.json/,
  );
  const install = ['install', '--offline', '--no-audit', '--no-fund'];
  execFileSync('npm', install, { cwd: clone });
  git('add', '-A');
  git('commit', '-q', '-m', 'third');
  const released = run();
  assert.equal(released.status, 0, released.stderr);
  const names = released.stdout.split('\n').map((line) => line.slice(66));
  assert.deepEqual(names, ['redrive-1.2.3.tgz', 'redrive-client-1.2.3.tgz', 'sbom.cdx.json', '']);
  writeManifests('1.2.3', '1.2.2');
  git('commit', '-q', '-am', 'fourth');
  assert.match(dryRun().stderr, /^@redrive\/client and the dependency on it must have the version 1\.2\.3$/m);
});
