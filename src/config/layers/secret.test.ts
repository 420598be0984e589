import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { format, inspect } from 'node:util';

import { readLogin, reasonAgainstLogin, Secret } from './secret.ts';

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

const newFile = async (t: { after(work: () => unknown): void }): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), 'secret-'));
  t.after(() => rm(folder, { recursive: true }));
  return join(folder, 'secret');
};

test('a password file is read as it is now, without the one newline at its end', async (t) => {
  const file = await newFile(t);
  const stored = { user: 'me', userFile: undefined, password: new Secret('first'), passwordFile: file };
  for (const [text, password] of [
    [' old \n', ' old '],
    ['new\r\n', 'new'],
    ['two\n\n', 'two\n'],
    ['{"username": "v-1", "password": "three"}', 'three'],
  ] as const) {
    await writeFile(file, text);
    assert.deepEqual(await readLogin(stored), { user: 'me', password });
  }
});

test('a file for user and password holds both, and half of it is an error', async (t) => {
  const file = await newFile(t);
  const stored = { user: 'v-1', userFile: file, password: new Secret('one'), passwordFile: file };
  await writeFile(file, '{"username": "v-2", "password": "two"}\n');
  assert.deepEqual(await readLogin(stored), { user: 'v-2', password: 'two' });
  assert.equal(reasonAgainstLogin(stored), undefined);
  await writeFile(file, '{"username": "v-2", "pass');
  await assert.rejects(readLogin(stored), /must hold JSON like/);
  assert.match(reasonAgainstLogin(stored) ?? '', /must hold JSON like/);
  await rm(file);
  assert.equal(reasonAgainstLogin(stored), 'the secret file cannot be read: ENOENT');
});
