import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeBase64 } from '../../../lib/bytes/base64.ts';
import { findNeighbours, keepList } from '../../../lib/kept-list.ts';
import { errorTitle, keyText, missingParts, placeText } from './message-words.ts';
import { traceOf } from './related/related-of.ts';
import { splitStack } from '../../../components/stack/split-stack.ts';

test('a key is text, or its first bytes in hexadecimal', () => {
  expect(keyText({ key: 'C-17' })).toBe('C-17');
  expect(keyText({ key: null })).toBeNull();
  expect(keyText({ key: null, key_base64: encodeBase64(Uint8Array.from([0, 255])) })).toBe('0x00ff');
  expect(keyText({ key: null, key_base64: encodeBase64(new Uint8Array(17)) })).toMatch(/^0x0{32}…$/);
});

test('only what a retry publishes has to be given again', () => {
  const names = { partName: (part: string) => part };
  expect(missingParts({}, names)).toEqual([]);
  expect(missingParts({ removed_parts: ['error'] }, names)).toEqual([]);
  expect(missingParts({ removed_parts: ['error', 'headers', 'value'] }, names)).toEqual(['value', 'headers']);
});

test('a place shows what is known', () => {
  expect(placeText({ topic: 'orders.v1', partition: 0, offset: 7 })).toBe('orders.v1 / 0 / 7');
  expect(placeText({ topic: 'orders.v1', partition: null, offset: null })).toBe('orders.v1');
  expect(placeText({ topic: null, partition: null, offset: null })).toBeNull();
});

test('the class stands before an error that does not begin with it', () => {
  expect(errorTitle({ error_class: 'com.acme.TimeoutException', error_message: 'no answer' })).toBe(
    'TimeoutException: no answer',
  );
  expect(errorTitle({ error_class: 'a.B', error_message: 'B: no answer' })).toBe('B: no answer');
  expect(errorTitle({ error_class: null, error_message: 'no answer' })).toBe('no answer');
});

test('a stack is split without losing or moving a line', () => {
  const line = fc.constantFrom(
    'java.lang.IllegalStateException: no',
    '\tat com.acme.Orders.charge(Orders.java:17)',
    '\tat java.base/java.lang.Thread.run(Thread.java:1)',
    '\tat java.util.concurrent.FutureTask.run(FutureTask.java:264)',
    '\tat org.springframework.kafka.listener.Container.run(Container.java:2)',
    'Caused by: x',
  );
  fc.assert(
    fc.property(fc.array(line, { minLength: 1 }), (lines) => {
      const parts = splitStack(lines.join('\n'));
      expect(parts.flatMap((part) => part.lines)).toEqual(lines);
      expect(parts.every((part) => part.kind === 'own' || part.lines.length > 1)).toBe(true);
    }),
  );
});

test('a message knows its neighbours in the list from which it was opened', () => {
  keepList('test', { filter: 'status:DEAD', ids: ['a', 'b', 'c'] });
  expect(findNeighbours('test', 'b')).toEqual({
    filter: 'status:DEAD',
    place: 2,
    count: 3,
    previous: 'a',
    next: 'c',
  });
  expect(findNeighbours('test', 'c')?.next).toBeNull();
  expect(findNeighbours('test', 'x')).toBeNull();
});

test('the trace of a message is that of its traceparent, if it can be seen', () => {
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
  const header = (value: string) => [{ key: 'traceparent', value }];
  expect(traceOf(header(`00-${trace.toUpperCase()}-00f067aa0ba902b7-01`))).toBe(trace);
  expect(traceOf(header(`00-${trace}`))).toBeNull();
  expect(traceOf([])).toBeNull();
  expect(traceOf('protected')).toBeNull();
  expect(traceOf(undefined)).toBeNull();
});
