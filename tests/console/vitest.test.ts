import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { childEnv } from '../support/child-env.ts';

const script = fileURLToPath(new URL('../../console/tools/test.ts', import.meta.url));

test('the pure and component tests of the console pass', { timeout: 120_000 }, async () => {
  const { code, said } = await new Promise<{ code: number; said: string }>((resolve) => {
    execFile(process.execPath, [script], { env: childEnv }, (error, out, err) =>
      resolve({ code: error === null ? 0 : 1, said: out + err }),
    );
  });
  assert.equal(code, 0, said);
});
