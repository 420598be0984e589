import { expect, test } from 'vitest';
import { isMe } from './is-me.ts';

test('the user is known by the subject; without authentication everybody is anonymous', () => {
  expect(isMe({ subject: 'user:ada', type: 'user' }, 'user:ada')).toBe(true);
  expect(isMe({ subject: 'user:ada', type: 'user' }, 'user:bea')).toBe(false);
  expect(isMe({ subject: 'user:ada', type: 'user' }, undefined)).toBe(false);
  expect(isMe({ subject: 'local', type: 'local' }, 'anonymous')).toBe(true);
  expect(isMe({ subject: 'user:ada', type: 'user' }, 'anonymous')).toBe(false);
});
