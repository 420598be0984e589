import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const script = fileURLToPath(new URL('release.ts', import.meta.url));

test('a release is refused on a dirty tree and without a section of the changelog', (t) => {
  const clone = mkdtempSync(join(tmpdir(), 'release-'));
  t.after(() => rmSync(clone, { recursive: true }));
  const git = (...args: readonly string[]): void =>
    void execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.com', ...args], {
      cwd: clone,
    });
  const dryRun = () =>
    spawnSync(process.execPath, ['release.ts', '--dry-run'], { cwd: clone, encoding: 'utf8' });
  cpSync(script, join(clone, 'release.ts'));
  writeFileSync(
    join(clone, 'package.json'),
    '{"version": "1.2.3", "type": "module", "homepage": "https://example.com"}',
  );
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
  assert.match(clean.stdout, /would write release\/: package, sbom\.cdx\.json, SHA256SUMS, provenance\.json/);
});
