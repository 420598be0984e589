import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { changesOf, draftOf, editableOf, hasChanges, type Version } from './draft.ts';
import { diffLines } from '../../../../lib/diff/line-diff.ts';

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

test('a diff has every line of both texts, in order', () => {
  const text = fc
    .array(fc.constantFrom('a', 'b', 'c', '{', '}', ''), { maxLength: 12 })
    .map((lines) => lines.join('\n'));
  fc.assert(
    fc.property(text, text, (before, after) => {
      const lines = diffLines(before, after);
      const without = (kind: string): string =>
        lines
          .filter((line) => line.kind !== kind)
          .map((line) => line.text)
          .join('\n');
      expect(without('added')).toBe(before);
      expect(without('removed')).toBe(after);
    }),
  );
});

test('a diff of equal texts has no change, and a large one ends at once', () => {
  expect(diffLines('a\nb', 'a\nb').every(({ kind }) => kind === 'same')).toBe(true);
  const [one, two] = [
    Array.from({ length: 20_000 }, (_, i) => `a${i}`),
    Array.from({ length: 20_000 }, (_, i) => `b${i}`),
  ];
  expect(diffLines(one.join('\n'), two.join('\n'))).toHaveLength(40_000);
});
