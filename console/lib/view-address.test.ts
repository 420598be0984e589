import { expect, test } from 'vitest';
import { isViewOf, readLocalPlace, viewAddress } from './view-address.ts';

test('a view is the list and its filter, without what is open beside it', () => {
  expect(viewAddress('/dlq/messages', { q: 'status:DEAD topic:a', peek: '17' })).toBe(
    '/dlq/messages?q=status:DEAD+topic:a',
  );
  expect(viewAddress('/inbox', {})).toBe('/inbox');
});

test('an address and its place undo each other', () => {
  const search = { q: 'text:"a & b = c" error:100%?#', state: 'snoozed' };
  expect(readLocalPlace(viewAddress('/inbox', search))).toEqual({ to: '/inbox', search });
});

test('an address that leads elsewhere is no place', () => {
  const elsewhere = [
    'https://example.com/',
    '//example.com/inbox',
    '/\\example.com',
    'javascript:alert(1)',
    '\t//example.com',
    '/\n/example.com',
    'inbox',
    '',
  ];
  for (const address of elsewhere) expect(readLocalPlace(address), address).toBeNull();
  expect(readLocalPlace('/inbox#x')).toEqual({ to: '/inbox', search: {} });
});

test('views belong to the list of their path', () => {
  expect(isViewOf('/dlq/messages?q=a', '/dlq/messages')).toBe(true);
  expect(isViewOf('/dlq/messages/1?q=a', '/dlq/messages')).toBe(false);
  expect(isViewOf('//dlq/messages', '/dlq/messages')).toBe(false);
});
