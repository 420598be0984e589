import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from '../../../../tests/support/test-config.ts';
import { examineExposure } from './exposure.ts';

const auth = 'auth: {jwt: {issuer: https://idp.example.com, audience: redrive}}\n';

function examined(server: string, more = auth): string {
  const config = load({ files: { 'config.yaml': `${more}server: {${server}}\n` } });
  const { status, found, advice = '' } = examineExposure(config);
  return `${status}: ${found} -> ${advice}`;
}

test('a server on loopback is not exposed', () => {
  assert.match(examined('host: 127.0.0.1', ''), /^ok: listens on 127\.0\.0\.1 only/);
});

test('a server that everybody reaches without authentication is a warning', () => {
  assert.match(
    examined('host: 0.0.0.0', 'auth: {mode: none}\n'),
    /^warning: 0\.0\.0\.0 is open to everybody/,
  );
});

test('tokens without TLS are a warning, in production a problem', () => {
  assert.match(
    examined('host: 0.0.0.0'),
    /^warning: .*tokens can be read on the way -> put a proxy with TLS/,
  );
  const plain = 'host: 0.0.0.0, public_url: "http://redrive.example.com"';
  assert.match(examined(plain, `app: {environment: prod}\n${auth}`), /^problem: /);
});

test('a proxy that is not listed is a warning', () => {
  const behind = 'host: 0.0.0.0, public_url: "https://redrive.example.com"';
  assert.match(examined(behind), /^warning: .*not listed.*-> set server\.trusted_proxies$/);
  assert.match(examined(`${behind}, trusted_proxies: ["10.0.0.0/8"]`), /^ok: by TLS/);
});
