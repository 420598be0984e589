import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { Header } from '../../../kernel/broker-record.ts';
import { decodeFailure } from './decode-failure.ts';
import { isAmong } from './dialect.ts';
import { dialects } from './dialects.ts';
import { stripFailureHeaders } from './strip-failure-headers.ts';

const headersOf = (texts: Readonly<Record<string, string>>): Header[] =>
  Object.entries(texts).map(([key, value]) => ({ key: Buffer.from(key), value: Buffer.from(value) }));

/** Names of every dialect, names that begin like theirs, and names of applications. */
const anyName = fc.constantFrom(
  ...dialects.flatMap(({ reads, failureHeaders, ownFailureHeaders, evidence }) => [
    ...reads.keys(),
    ...[failureHeaders, ownFailureHeaders].flatMap(({ prefixes, names }) => [
      ...prefixes.map((prefix) => `${prefix}x`),
      ...names,
    ]),
    ...(evidence.together ?? []).flat(),
  ]),
  'traceparent',
  'errors',
  '',
);

const anyHeader: fc.Arbitrary<Header> = fc.record({
  key: anyName.map((name) => Buffer.from(name)),
  value: fc.oneof(
    fc.constant(null),
    fc.uint8Array({ maxLength: 24 }).map((array) => Buffer.from(array)),
    fc.stringMatching(/^-?\d{0,25}$/).map((digits) => Buffer.from(digits)),
    fc
      .array(
        fc.constantFrom(
          'kafka://topic/',
          'a.B',
          ': ',
          '\nCaused by: ',
          '\n\tat ',
          '\0',
          'org.apache.kafka.connect.errors.X',
        ),
      )
      .map((parts) => Buffer.from(parts.join(''))),
  ),
});

test('whatever the headers contain, decoding does not throw and its result can be stored', () => {
  fc.assert(
    fc.property(fc.array(anyHeader, { maxLength: 20 }), (headers) => {
      const failure = decodeFailure(headers);
      assert.notEqual(failure.errorMessage.trim(), '');
      for (const value of Object.values(failure)) {
        if (typeof value === 'string') assert.ok(value.isWellFormed() && !value.includes('\0'));
        if (typeof value === 'number') assert.ok(Number.isInteger(value) && value >= 0);
        if (typeof value === 'bigint') assert.ok(value >= 0n && value < 2n ** 63n);
      }
      assert.ok((failure.originalPartition ?? 0) < 2 ** 31);
    }),
    { numRuns: 3000 },
  );
});

test('a republished record has no failure header of its dialect, and every header that is none', () => {
  fc.assert(
    fc.property(fc.array(anyHeader, { maxLength: 20 }), (headers) => {
      const { dialect } = decodeFailure(headers);
      const isFailureHeader = (name: string): boolean =>
        dialects.some(
          (known) =>
            isAmong(known.failureHeaders, name) ||
            (known.name === dialect && (isAmong(known.ownFailureHeaders, name) || known.reads.has(name))),
        );
      assert.deepEqual(
        stripFailureHeaders(headers, dialect),
        headers.filter(({ key }) => !isFailureHeader(key.toString('latin1'))),
      );
    }),
    { numRuns: 3000 },
  );
});

test('a record without its failure headers proves its dialect no longer', () => {
  fc.assert(
    fc.property(fc.array(anyHeader, { maxLength: 20 }), (headers) => {
      const { dialect } = decodeFailure(headers);
      const rest = decodeFailure(stripFailureHeaders(headers, dialect));
      assert.ok(dialect === 'none' || rest.dialect !== dialect);
    }),
    { numRuns: 1000 },
  );
});

test('the time to decode grows linearly with headers and their size', () => {
  const longest = (times: number): Header[] =>
    dialects.flatMap(({ reads }) =>
      [...reads.keys()].flatMap((name) =>
        headersOf({ [name]: 'a.B: nested exception is \nCaused by: '.repeat(times) }),
      ),
    );
  for (const headers of [longest(20_000), Array.from({ length: 200 }, () => longest(1)).flat()])
    assert.equal(decodeFailure(headers).dialect, 'kafka-connect');
  for (const { evidence, reads } of dialects) {
    const proof = headersOf(Object.fromEntries((evidence.together?.[0] ?? []).map((name) => [name, '1'])));
    const huge = [...reads.keys()].flatMap((name) => headersOf({ [name]: '1a.'.repeat(300_000) }));
    assert.notEqual(decodeFailure([...proof, ...huge]).dialect, 'none');
  }
});
