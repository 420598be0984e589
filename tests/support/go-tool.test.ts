import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test, type TestContext } from 'node:test';

/** Loads the module with CI=true on a machine that has built nothing, and has this Go, or none. */
function loadWith(t: TestContext, goVersion?: string): Readonly<{ status: number | null; stderr: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-go-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const programs = join(folder, 'bin');
  mkdirSync(programs);
  if (goVersion !== undefined)
    writeFileSync(join(programs, 'go'), `#!/bin/sh\necho 'go version ${goVersion} linux/amd64'\n`, {
      mode: 0o755,
    });
  const code = `const { needsGoTools } = await import(${JSON.stringify(new URL('go-tool.ts', import.meta.url).href)});
    process.stdout.write(JSON.stringify(needsGoTools));`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
    env: { CI: 'true', PATH: programs, REDRIVE_CACHE_DIR: join(folder, 'cache') },
    encoding: 'utf8',
  });
  if (status === 0) assert.match(stdout, /^\{"skip":/);
  return { status, stderr };
}

describe('the tests that need Go, with CI=true', () => {
  for (const [machine, version, reason] of [
    ['without Go', undefined, /SKIPPED: go is not installed/],
    [
      'with the Go of Debian',
      'go1.24.4',
      /SKIPPED: Go 1\.26 or newer is needed, found go version go1\.24\.4/,
    ],
  ] as const)
    test(`are skipped on a machine ${machine}, and say so`, (t) => {
      const { status, stderr } = loadWith(t, version);
      assert.equal(status, 0, stderr);
      assert.match(stderr, reason);
    });

  test('fail where Go could have built the programs and has not', (t) => {
    const { status, stderr } = loadWith(t, 'go1.26.0');
    assert.notEqual(status, 0);
    assert.match(stderr, /run this through `npm test`/);
  });
});
