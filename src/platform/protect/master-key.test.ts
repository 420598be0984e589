import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createMasterKeyFile, newMasterKey } from '../../../tests/support/encryption.ts';
import { startTransit, type TransitServer } from '../../../tests/support/transit-server.ts';
import { KeyError } from '../../kernel/protect/keyring.ts';
import { keyFile } from './key-file.ts';
import type { MasterKey } from './master-key.ts';
import { vaultTransit } from './vault-transit.ts';

const secret = randomBytes(32);
const isKeyError = (pattern: RegExp) => (error: unknown) => {
  assert.ok(error instanceof KeyError, String(error));
  assert.match(error.message, pattern);
  return true;
};

describe('a key file', () => {
  const [first, second] = [newMasterKey('first'), newMasterKey('second')];
  const file = createMasterKeyFile(first);
  const master = keyFile(file.path);

  test('wraps with its first key and unwraps with all', async () => {
    const wrapped = await master.wrap(secret);
    assert.match(wrapped, /^file:first:/);
    file.write('# newest first', '', second, first);
    assert.deepEqual(await master.unwrap(wrapped), secret);
    assert.match(await master.wrap(secret), /^file:second:/);
  });

  test('rewraps what an older key wrapped, once', async () => {
    file.write(first);
    const wrapped = await master.wrap(secret);
    assert.equal(await master.rewrap(wrapped), null);
    file.write(second, first);
    const renewed = (await master.rewrap(wrapped)) ?? assert.fail('it was wrapped by the first key');
    assert.equal(await master.rewrap(renewed), null);
    file.write(second);
    assert.deepEqual(await master.unwrap(renewed), secret);
    await assert.rejects(master.unwrap(wrapped), isKeyError(/master key first is missing/));
  });

  test('another key of the same name, and a changed text, are refused', async () => {
    file.write(first);
    const wrapped = await master.wrap(secret);
    file.write(newMasterKey('first'));
    await assert.rejects(master.unwrap(wrapped), isKeyError(/is not the one that wrapped it/));
    file.write(first);
    const changed = wrapped.replace(/.(?==*$)/, (letter) => (letter === 'A' ? 'B' : 'A'));
    await assert.rejects(master.unwrap(changed), KeyError);
    await assert.rejects(master.unwrap('vault:v1:AAAA'), isKeyError(/not wrapped by a key file/));
  });

  test('with a line that is no key is refused without quoting it', async () => {
    for (const line of ['first', 'first:c2VjcmV0', `${first}x`, `${first}\n${first}`]) {
      file.write(line);
      await assert.rejects(master.wrap(secret), (error) => {
        assert.ok(error instanceof KeyError && !error.message.includes('c2VjcmV0'), String(error));
        assert.ok(!error.message.includes(first.slice(6, 20)));
        return true;
      });
    }
    file.write();
    await assert.rejects(master.wrap(secret), isKeyError(/there is no key/));
    await assert.rejects(keyFile('/nonexistent').wrap(secret), isKeyError(/ENOENT/));
  });
});

describe('Vault transit', () => {
  let vault: TransitServer;
  let master: MasterKey;
  const folder = mkdtempSync(join(tmpdir(), 'vault-token-'));
  const tokenFile = join(folder, 'token');
  before(async () => {
    vault = await startTransit({ mount: 'kv/transit', namespace: 'team' });
    writeFileSync(tokenFile, 'a-token\n');
    master = vaultTransit({
      address: `${vault.url}/`,
      mount: 'kv/transit',
      key: 'redrive',
      tokenFile,
      namespace: 'team',
      timeoutMs: 2000,
    });
  });
  after(async () => {
    await vault.close();
    rmSync(folder, { recursive: true });
  });

  test('wraps and unwraps', async () => {
    const wrapped = await master.wrap(secret);
    assert.match(wrapped, /^vault:v1:/);
    assert.deepEqual(await master.unwrap(wrapped), secret);
  });

  test('rewraps under a new version without the data key leaving it', async () => {
    const wrapped = await master.wrap(secret);
    assert.equal(await master.rewrap(wrapped), null);
    vault.rotate();
    const asked = vault.requests.length;
    const renewed = (await master.rewrap(wrapped)) ?? assert.fail('there is a newer version');
    assert.match(renewed, /^vault:v2:/);
    assert.deepEqual(vault.requests.slice(asked), ['rewrap']);
    vault.setMinDecryptionVersion(2);
    assert.deepEqual(await master.unwrap(renewed), secret);
    await assert.rejects(master.unwrap(wrapped), isKeyError(/status 400 .*too old/));
  });

  test('reads its token again for every request', async () => {
    vault.setToken('another');
    await assert.rejects(master.wrap(secret), isKeyError(/status 403 permission denied/));
    writeFileSync(tokenFile, 'another');
    await master.wrap(secret);
    writeFileSync(tokenFile, 'two\nlines');
    await assert.rejects(master.wrap(secret), isKeyError(/there is no token/));
    writeFileSync(tokenFile, 'another');
  });

  test('that is sealed, changed or away is an error of the key', async () => {
    const wrapped = await master.wrap(secret);
    vault.seal(true);
    await assert.rejects(master.unwrap(wrapped), isKeyError(/status 503 Vault is sealed/));
    vault.seal(false);
    await assert.rejects(master.unwrap(`${wrapped.slice(0, -8)}AAAAAAA=`), isKeyError(/status 400/));
    await assert.rejects(master.unwrap('file:first:AAAA'), isKeyError(/not wrapped by Vault/));
    const away = vaultTransit({
      address: 'http://127.0.0.1:9',
      mount: 'transit',
      key: 'redrive',
      tokenFile,
      namespace: undefined,
    });
    await assert.rejects(away.wrap(secret), isKeyError(/Vault did not answer/));
  });
});
