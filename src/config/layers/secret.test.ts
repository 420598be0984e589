import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { format, inspect } from 'node:util';

import { readSecret, Secret } from './secret.ts';

test('a secret shows itself to nobody but the one who asks for it', () => {
  const secret = new Secret('hunter2');
  assert.equal(secret.reveal(), 'hunter2');
  const shown = [
    JSON.stringify({ secret }),
    inspect({ deep: [{ secret }] }, { depth: null, showHidden: true }),
    format('%s %o %O %j', secret, secret, secret, secret),
    // The point is what happens to those who forget to reveal it.
    // oxlint-disable-next-line typescript/no-base-to-string, typescript/restrict-template-expressions
    `${secret}`,
    JSON.stringify(Object.entries(secret)),
    JSON.stringify(structuredClone(secret)),
  ];
  for (const text of shown) assert(!text.includes('hunter2'), text);
});

test('a secret file is read as it is now, without the newline at its end', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'secret-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, 'db-password');
  await writeFile(file, ' old \n');
  assert.equal(await readSecret(file), ' old ');
  await writeFile(file, 'new\r\n');
  assert.equal(await readSecret(file), 'new');
});
