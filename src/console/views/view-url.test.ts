import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isPageOfConsole } from './view-url.ts';

test('a view is a page of the console, with its query', () => {
  for (const url of ['/inbox', '/dlq/messages?q=status%3ADEAD', '/sagas/x#log', '/dlq/../jobs/list'])
    assert.ok(isPageOfConsole(url), url);
});

test('nothing else is a view: other origins, other paths, what browsers read differently', () => {
  for (const url of [
    '',
    'inbox',
    '//evil.example/inbox',
    '/\\evil.example',
    '/inbox\\..',
    'https://evil.example/inbox',
    'javascript:alert(1)',
    '/api/v1/inbox',
    '/..//evil.example',
    '/inbox /x',
    '/inbox\n',
    '/auth/login?return_to=/inbox',
  ])
    assert.ok(!isPageOfConsole(url), url);
});
