import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pickEncoding, type Asset } from './built-assets.ts';

const bytes = Buffer.from('x');
const asset: Asset = {
  type: 'text/css',
  bytes: new Map([
    ['identity', bytes],
    ['br', bytes],
    ['gzip', bytes],
  ]),
};

test('a client gets the best encoding that it accepts', () => {
  assert.equal(pickEncoding(asset, 'gzip, deflate, BR'), 'br');
  assert.equal(pickEncoding(asset, 'gzip;q=0.5'), 'gzip');
  assert.equal(pickEncoding(asset, 'br;q=0, gzip;q=0.0'), 'identity');
  assert.equal(pickEncoding(asset), 'identity');
  assert.equal(pickEncoding({ ...asset, bytes: new Map([['identity', bytes]]) }, 'br'), 'identity');
});
