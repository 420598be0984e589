import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EncryptJWT } from 'jose';
import { createLoginStateSeal, loginLifetimeS, type LoginState } from './login-state.ts';

const beganAtMs = 1_800_000_000_000;
const login: LoginState = { state: '0abc', nonce: 'n', verifier: 'v', returnTo: '/inbox', beganAtMs };
const [oldKey, newKey] = ['o'.repeat(32), 'n'.repeat(32)];

test('a sealed login is opened by every key, and sealed by the first', async () => {
  let keys = [oldKey];
  const { seal, open } = createLoginStateSeal(
    () => keys,
    () => beganAtMs,
  );
  const sealed = await seal(login);
  assert.deepEqual(await open(sealed), login);
  assert.ok(!Buffer.from(sealed.split('.')[3] ?? '', 'base64url').includes('inbox'));
  keys = [newKey, oldKey];
  assert.deepEqual(await open(sealed), login);
  const later = await seal(login);
  keys = [newKey];
  assert.deepEqual(await open(later), login);
  assert.equal(await open(sealed), undefined);
});

test('a login is over after ten minutes', async () => {
  let nowMs = beganAtMs;
  const { seal, open } = createLoginStateSeal(
    () => [oldKey],
    () => nowMs,
  );
  const sealed = await seal(login);
  nowMs += loginLifetimeS * 1000 - 1000;
  assert.deepEqual(await open(sealed), login);
  nowMs += 1000;
  assert.equal(await open(sealed), undefined);
});

test('what was changed, or sealed in another way, is no login', async () => {
  const { seal, open } = createLoginStateSeal(
    () => [oldKey],
    () => beganAtMs,
  );
  const sealed = await seal(login);
  for (const at of [5, 40, sealed.length - 3]) {
    const changed = sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1);
    assert.equal(await open(changed), undefined);
  }
  for (const text of ['', 'a.b.c', '{}', 'x'.repeat(9000)]) assert.equal(await open(text), undefined);
  const other = await new EncryptJWT({ ...login })
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
    .encrypt(new Uint8Array(32));
  assert.equal(await open(other), undefined);
});
