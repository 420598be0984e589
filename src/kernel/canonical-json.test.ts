import assert from 'node:assert/strict';
import { test } from 'node:test';
import { doubleOf, rfcNumbers, rfcOrder, rfcSample } from '../../tests/support/json-texts.ts';
import { canonicalJson, sha256Of } from './canonical-json.ts';
import { parseExactJson } from './exact-json.ts';
import { MAX_DEPTH } from './unsafe-input.ts';

function valueOf(text: string): unknown {
  const read = parseExactJson(text);
  assert(read.ok);
  return read.value;
}

test('the examples of RFC 8785 come out as it says', () => {
  assert.equal(canonicalJson(valueOf(rfcSample.text)), rfcSample.canonical);
  const ordered = canonicalJson(valueOf(rfcOrder.text)).matchAll(/:"([^"]+)"/g);
  assert.deepEqual(
    Array.from(ordered, ([, value]) => value),
    rfcOrder.values,
  );
  for (const [bits, written] of rfcNumbers) assert.equal(canonicalJson(doubleOf(bits)), written);
});

test('a value without a canonical form is an error', () => {
  for (const value of [NaN, Infinity, -Infinity, undefined, '\ud800', { '\udc00': 1 }, [() => {}, NaN]])
    assert.throws(() => canonicalJson(value));
});

test('text that looks like an escaped surrogate, and pairs of surrogates, have a canonical form', () => {
  for (const value of [String.raw`\ud800`, { [String.raw`\\udfff`]: '😀' }])
    assert.equal(canonicalJson(value), JSON.stringify(value));
  assert.throws(() => canonicalJson(`\\\ud800`));
});

test('a value may be nested as deeply as input may', () => {
  const text = `${'[{"a":'.repeat(MAX_DEPTH / 2)}1${'}]'.repeat(MAX_DEPTH / 2)}`;
  assert.equal(canonicalJson(JSON.parse(text)), text);
});

test('a digest is that of the bytes in UTF-8, and names its function', () => {
  assert.equal(sha256Of(''), 'sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
  assert.equal(sha256Of('abc'), 'sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  assert.equal(sha256Of('€'), sha256Of(Buffer.from([0xe2, 0x82, 0xac])));
});
