import { expect, test } from 'vitest';
import { loginAddress } from './login-address.ts';

const facts = { prefix: '/ops', environment: 'test', login: '/ops/auth/login' };
const returnTo = (path: string, more: Readonly<{ search?: string; hash?: string }> = {}): string | null =>
  new URL(loginAddress(facts, { pathname: path, search: '', ...more }), 'http://x').searchParams.get(
    'return_to',
  );

test('a login leads back to the exact address below the prefix', () => {
  expect(returnTo('/ops/jobs', { search: '?status=dead&text=a%20b', hash: '#top' })).toBe(
    '/jobs?status=dead&text=a%20b#top',
  );
  expect(returnTo('/ops')).toBe('/');
  expect(returnTo('/ops/')).toBe('/');
});

test('a path that only begins like the prefix is whole', () => {
  expect(returnTo('/opsother/jobs')).toBe('/opsother/jobs');
});

test('an address that the server would refuse keeps its page', () => {
  expect(returnTo('/ops/jobs', { search: `?text=${'a'.repeat(2000)}` })).toBe('/jobs');
});
