import { expect, test } from 'vitest';
import { changesOf, draftOf, editableOf, hasChanges, type Version } from './draft.ts';

const version: Version = {
  id: '0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31',
  version: 1,
  target_topic: 'orders.v1',
  actor: 'alice@example.com',
  reason: null,
  created_at: '2026-11-19T12:00:00Z',
  key_base64: 'AP8=',
  value_base64: 'e30=',
  value_text: '{}',
  headers: [
    { key: 'trace', value: 'a' },
    { key: 'bytes', value: null, value_base64: '/w==' },
  ],
};

test('only what was changed is sent, and bytes that are no text stay', () => {
  const draft = draftOf(version);
  expect(editableOf(version)).toEqual({ value: true, key: false });
  expect(hasChanges(draft, version)).toBe(false);
  expect(changesOf({ ...draft, value: '{"a":1}' }, version)).toEqual({ value: '{"a":1}' });
  expect(changesOf({ ...draft, key: 'other' }, version)).toEqual({});
  expect(changesOf({ ...draft, value: null, topic: ' orders.v2 ' }, version)).toEqual({
    value: null,
    target_topic: 'orders.v2',
  });
  const [first, second] = draft.headers;
  if (first === undefined || second === undefined) throw new Error('two headers');
  expect(changesOf({ ...draft, headers: [{ ...first, value: 'b' }, second] }, version)).toEqual({
    headers: [
      { key: 'trace', value: 'b' },
      { key: 'bytes', value: null, value_base64: '/w==' },
    ],
  });
});
