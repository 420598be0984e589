import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { localPrincipal } from '../../kernel/access/principal.ts';
import { actorOf } from './actor.ts';

const actor = (header: string | undefined) =>
  actorOf({ headers: header === undefined ? {} : { 'x-actor': header }, principal: localPrincipal });
/** As Node hands over the bytes of a UTF-8 header. */
const onTheWire = (text: string) => Buffer.from(text, 'utf8').toString('latin1');

test('the actor is the name in the header, or anonymous', () => {
  assert.equal(actor('alice@example.com'), 'alice@example.com');
  assert.equal(actor(undefined), 'anonymous');
  assert.equal(actor('   '), 'anonymous');
  assert.equal(actor('\u0000\u0001'), 'anonymous');
});

test('a name in UTF-8 or Latin-1 is decoded', () => {
  assert.equal(actor(onTheWire('山田 太郎')), '山田 太郎');
  assert.equal(actor('M\u00fcller'), 'Müller');
});

test('control characters and blanks in a name become one blank', () => {
  assert.equal(actor(onTheWire('al\tice\u202e  \u0007bob')), 'al ice bob');
});

test('every name can be stored', () => {
  const header = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 600 }).map(onTheWire),
    fc.string({ maxLength: 600 }),
  );
  fc.assert(
    fc.property(header, (header) => {
      const name = actor(header);
      assert.ok(name.length > 0 && name.length <= 255 && name.isWellFormed() && !name.includes('\0'));
      assert.equal(name, name.trim());
    }),
  );
});
