import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { readReturnPath } from './return-path.ts';

test('paths of this server are kept', () => {
  for (const path of [
    '/',
    '/dlq/messages?status=DEAD&topic=a.b',
    '/jobs/1#history',
    '/authors',
    '/a?next=//b',
  ])
    assert.equal(readReturnPath(path), path);
  assert.equal(readReturnPath('/a/../inbox'), '/inbox');
});

test('whatever a browser reads as another host, and another login, is none', () => {
  for (const wrong of [
    '',
    'inbox',
    'https://evil.example.com/',
    '//evil.example.com',
    '/\\evil.example.com',
    '\\\\evil.example.com',
    '/\t/evil.example.com',
    '/%0a/\n/evil',
    '/a/..//evil.example.com',
    '/./\\evil.example.com',
    'javascript:alert(1)',
    '/auth/login',
    '/AUTH/callback',
    '/%61uth/login',
    '/x/../auth/login',
    `/${'a'.repeat(2000)}`,
    '/注文',
  ])
    assert.equal(readReturnPath(wrong), undefined, wrong);
});

test('no text leads to another origin', () => {
  const piece = fc.constantFrom(
    '/',
    '\\',
    '.',
    '..',
    ':',
    '@',
    '?',
    '#',
    '\t',
    '\n',
    ' ',
    'evil.example',
    '%2f',
    '%5c',
    'a',
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const path = readReturnPath(pieces.join(''));
      if (path === undefined) return;
      assert.equal(new URL(path, 'https://ours.example/auth/callback').origin, 'https://ours.example');
    }),
    { numRuns: 2000 },
  );
});
