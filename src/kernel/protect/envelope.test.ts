import assert from 'node:assert/strict';
import { createDecipheriv, createHmac } from 'node:crypto';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { envelopeBytes, keyIdOf, lookupHash, open, seal, type DataKey, type Place } from './envelope.ts';

const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array));
const secret = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((array) => Buffer.from(array));
const dataKey = fc.record({ id: fc.integer({ min: 1, max: 2 ** 32 - 1 }), secret });
const place = fc.record({
  slice: fc.constantFrom('dlq', 'jobs'),
  item: fc.uuid(),
  column: fc.constantFrom('key', 'value', 'headers', 'stack'),
});

test('what was sealed is opened with the same key at the same place', () => {
  fc.assert(
    fc.property(dataKey, place, bytes, (key, at, plain) => {
      const sealed = seal(key, at, plain);
      assert.equal(sealed.length, plain.length + envelopeBytes);
      assert.equal(keyIdOf(sealed), key.id);
      assert.deepEqual(open(key, at, sealed), plain);
    }),
  );
});

test('any changed bit is refused', () => {
  fc.assert(
    fc.property(dataKey, place, bytes, fc.nat(), (key, at, plain, chosen) => {
      const sealed = seal(key, at, plain);
      const bit = chosen % (sealed.length * 8);
      sealed.writeUInt8(sealed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
      assert.equal(open(key, at, sealed), null);
    }),
    { numRuns: 500 },
  );
});

test('bytes that were cut or lengthened are refused', () => {
  fc.assert(
    fc.property(dataKey, place, bytes, fc.nat(), (key, at, plain, chosen) => {
      const sealed = seal(key, at, plain);
      assert.equal(open(key, at, sealed.subarray(0, chosen % sealed.length)), null);
      assert.equal(open(key, at, Buffer.concat([sealed, Buffer.from([chosen & 255])])), null);
    }),
  );
});

test('bytes at another place, or with another key, are refused', () => {
  const differs = (one: Place, other: Place): boolean => JSON.stringify(one) !== JSON.stringify(other);
  fc.assert(
    fc.property(fc.tuple(dataKey, dataKey), fc.tuple(place, place), bytes, (keys, places, plain) => {
      const [[key, otherKey], [at, elsewhere]] = [keys, places];
      const sealed = seal(key, at, plain);
      if (differs(at, elsewhere)) assert.equal(open(key, elsewhere, sealed), null);
      if (!key.secret.equals(otherKey.secret))
        assert.equal(open({ ...otherKey, id: key.id }, at, sealed), null);
      if (key.id !== otherKey.id) assert.equal(open({ ...key, id: otherKey.id }, at, sealed), null);
    }),
  );
});

test('bytes in another column of the same item are refused', () => {
  fc.assert(
    fc.property(dataKey, place, bytes, (key, at, plain) => {
      const sealed = seal(key, at, plain);
      for (const column of ['key', 'value', 'headers', 'stack'])
        if (column !== at.column) assert.equal(open(key, { ...at, column }, sealed), null);
    }),
  );
});

test('equal bytes are sealed to different bytes, and the bytes do not contain them', () => {
  const key: DataKey = { id: 1, secret: Buffer.alloc(32, 7) };
  const at: Place = { slice: 'dlq', item: 'a', column: 'value' };
  const plain = Buffer.from('canary of sixteen bytes or more');
  const [one, other] = [seal(key, at, plain), seal(key, at, plain)];
  assert.ok(!one.equals(other));
  assert.ok(!one.includes(plain.subarray(0, 8)));
});

test('a value of several parts is opened as it was', () => {
  const key: DataKey = { id: 1, secret: Buffer.alloc(32, 7) };
  const at: Place = { slice: 'dlq', item: 'a', column: 'value' };
  const plain = Buffer.alloc((5 << 20) + 3, 'abc');
  assert.deepEqual(open(key, at, seal(key, at, plain)), plain);
});

test('a lookup hash depends on key, purpose and bytes', () => {
  fc.assert(
    fc.property(secret, secret, bytes, bytes, (one, other, a, b) => {
      const hash = lookupHash(one, 'key', a);
      assert.deepEqual(hash, lookupHash(one, 'key', a));
      if (!a.equals(b)) assert.notDeepEqual(hash, lookupHash(one, 'key', b));
      if (!one.equals(other)) assert.notDeepEqual(hash, lookupHash(other, 'key', a));
      assert.notDeepEqual(hash, lookupHash(one, 'record', a));
    }),
  );
});

test('each item has a key of its own, and the stored form is as documented', () => {
  const key: DataKey = { id: 7, secret: Buffer.alloc(32, 1) };
  const plain = Buffer.from('{"card":"4111"}');
  const openWith = (item: string, sealed: Buffer): string => {
    const itemKey = createHmac('sha256', key.secret).update(`redrive item key\0dlq\0${item}`).digest();
    const decipher = createDecipheriv('aes-256-gcm', itemKey, sealed.subarray(5, 17));
    decipher.setAAD(Buffer.concat([sealed.subarray(0, 5), Buffer.from('dlq\0value\0message-1')]));
    decipher.setAuthTag(sealed.subarray(-16));
    return decipher.update(sealed.subarray(17, -16), undefined, 'utf8') + decipher.final('utf8');
  };
  const sealed = seal(key, { slice: 'dlq', item: 'message-1', column: 'value' }, plain);
  assert.equal(openWith('message-1', sealed), String(plain));
  assert.throws(() => openWith('message-2', sealed));
});
