import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fastify } from 'fastify';
import { ConfigError } from '../config-error.ts';
import { loadConfig } from '../config.ts';

function rangesOf(value: string): readonly string[] | string {
  try {
    return loadConfig({ env: { SERVER_TRUSTED_PROXIES: value }, secretsDir: '/nonexistent' }).server
      .trustedProxies;
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.message;
  }
}

test('addresses and ranges are accepted, and the server understands them', () => {
  const ranges = [
    '10.0.0.0/8',
    '192.0.2.7',
    '2001:db8::/32',
    '::1',
    '172.16.0.0/12',
    'fd00::/8',
    '192.0.2.1/32',
  ];
  assert.deepEqual(rangesOf(ranges.join(',')), ranges);
  assert.ok(fastify({ trustProxy: ranges }));
});

test('names, every address, and what is not a range are refused', () => {
  for (const wrong of [
    'loopback',
    'proxy.internal',
    '10.0.0.0/33',
    '10.0.0/8',
    '::/129',
    '10.0.0.0/',
    '1.2.3.4/08',
  ])
    assert.match(String(rangesOf(wrong)), /must be an IP address or a range such as 10\.0\.0\.0\/8/, wrong);
  for (const wrong of ['0.0.0.0/00', '::ffff:0.0.0.0/96', '10.0.0.0/255.0.0.0', 'true', '1'])
    assert.match(String(rangesOf(wrong)), /must be an IP address or a range/, wrong);
  for (const everybody of ['0.0.0.0/0', '::/0'])
    assert.match(String(rangesOf(everybody)), /must not be every address/, everybody);
});
