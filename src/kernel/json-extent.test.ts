import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { jsonExtent } from './json-extent.ts';

const bytesOf = (text: string): number => jsonExtent(text, 512).bytes;
const depthOf = (text: string): number => jsonExtent(text, 512).depth;

describe('The extent of a JSON text', () => {
  it('is its own length where no number has an exponent', () => {
    for (const text of ['null', '[1, 2.5, -3]', '{"a":"1e308"}', '"é"', '["\\"1e308"]', 'true'])
      assert.equal(bytesOf(text), Buffer.byteLength(text), text);
  });

  it('counts the digits that PostgreSQL writes for an exponent', () => {
    const written: Readonly<Record<string, number>> = {
      '1e308': 309,
      '1E+308': 309,
      '-1e308': 310,
      '1.5e3': 4,
      '1e-300': 302,
      '1.25e-2': 6,
      '1e131071': 131_072,
      '0.001e10': 10,
    };
    for (const [text, bytes] of Object.entries(written)) {
      const counted = bytesOf(text);
      assert.ok(counted >= bytes && counted <= bytes + 3, `${text}: ${counted}`);
    }
  });

  it('grows with each of many numbers, and stays a number for exponents beyond any', () => {
    assert.ok(bytesOf(`[${'1e308,'.repeat(1000)}1]`) > 309_000);
    assert.ok(Number.isSafeInteger(bytesOf(`[${'1e99999999999999999999,'.repeat(40_000)}1]`)));
  });

  it('has the depth of its arrays and objects, not of brackets in texts', () => {
    assert.equal(depthOf('1'), 0);
    assert.equal(depthOf('[{"a":[]}]'), 3);
    assert.equal(depthOf('["[[[\\"[["]'), 1);
    assert.equal(depthOf('[[],[],{}]'), 2);
  });

  it('is not looked for beyond the depth that is allowed, nor beyond the end of an open text', () => {
    assert.equal(jsonExtent('['.repeat(1_000_000), 512).depth, 513);
    assert.equal(depthOf('["abc\\'), 1);
  });
});
