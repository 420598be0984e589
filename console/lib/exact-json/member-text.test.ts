import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { memberText } from './member-text.ts';

test('a member is found as it was written, whatever stands around it', () => {
  expect(memberText('{"a": {"payload": 1}, "payload": {"n": 1e400, "n": 1.0}, "z": "]"}', 'payload')).toBe(
    '{"n": 1e400, "n": 1.0}',
  );
  expect(memberText('{"a":"payload","b":["payload"]}', 'payload')).toBeNull();
  expect(memberText('["payload", 1]', 'payload')).toBeNull();
  const names = fc.constantFrom('a', 'payload', 'b"', 'c\\', ':{');
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.tuple(names, fc.jsonValue()), { selector: ([name]) => name }),
      (members) => {
        const whole = Object.fromEntries(members);
        const expected = 'payload' in whole ? JSON.stringify(whole['payload']) : null;
        expect(memberText(JSON.stringify(whole), 'payload')).toBe(expected);
      },
    ),
  );
});
