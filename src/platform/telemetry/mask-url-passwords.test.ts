import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { maskUrlPasswords } from './mask-url-passwords.ts';

test('the password of a URL is masked, whatever it holds', () => {
  for (const [text, masked] of [
    ['postgres://app:secret@db:5432/x', 'postgres://app:***@db:5432/x'],
    ['postgres://app:s/e:c@r@db', 'postgres://app:***@r@db'],
    ['amqp://:secret@[::1]/', 'amqp://:***@[::1]/'],
    ['a://b://c:secret@d', 'a://b:***@d'],
    ['"http://u:p@h" http://u:p@h,http://u:p@h', '"http://u:***@h" http://u:***@h,http://u:***@h'],
    ['http://host:80/ a@b.c', 'http://host:80/ a@b.c'],
    ['http://u:p@', 'http://u:p@'],
  ] as const)
    assert.equal(maskUrlPasswords(text), masked);
});

test('every text is masked as by the rule in one expression, which is quadratic', () => {
  const rule = /(:\/\/[^\s/"@:]*:)[^\s"]*?(@(?=[\w.[-]))/g;
  const pieces = fc.constantFrom('://', ':', '/', '@', 'a', '.', '[', '-', '"', ' ', '\n', 'é');
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 30 }), (parts) => {
      const text = parts.join('');
      assert.equal(maskUrlPasswords(text), text.replace(rule, '$1***$2'));
    }),
    { numRuns: 2000 },
  );
});
