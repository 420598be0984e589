import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { HttpAnswer } from '../../kernel/http-answer.ts';
import { judgePush, maxResultBytes, type PushOutcome } from './judge-push.ts';

const now = new Date('2026-03-01T12:00:00Z');

type Said = Partial<Omit<HttpAnswer, 'body'>> & Readonly<{ body?: string | Buffer }>;

function judge({ body = '', ...said }: Said): PushOutcome {
  const answer = { status: 200, headers: {}, isBodyCut: false, ...said };
  return judgePush({ ...answer, body: Buffer.from(body as string) }, now);
}

test('the status decides', () => {
  const ends = (...statuses: readonly number[]): unknown =>
    statuses.map((status) => judge({ status }).outcome);
  assert.deepEqual(ends(200, 201, 202, 204, 299), Array(5).fill('done'));
  assert.deepEqual(ends(429, 503), Array(2).fill('busy'));
  assert.deepEqual(
    ends(301, 302, 304, 307, 400, 401, 404, 408, 409, 410, 422, 499),
    Array(12).fill('refused'),
  );
  assert.deepEqual(ends(500, 501, 502, 504, 599, 600, 999), Array(7).fill('failed'));
});

test('both forms of Retry-After are read, and no job waits for more than an hour', () => {
  const waitOf = (status: number, value: string | readonly string[]): unknown => {
    const outcome = judge({ status, headers: { 'retry-after': value } });
    return 'delayMs' in outcome ? outcome.delayMs : undefined;
  };
  assert.equal(waitOf(429, '7'), 7000);
  assert.equal(waitOf(503, 'Sun, 01 Mar 2026 12:00:30 GMT'), 30_000);
  assert.equal(waitOf(503, ['1', '3']), 3000);
  assert.equal(waitOf(429, '999999999'), 3_600_000);
  assert.equal(waitOf(429, 'soon'), 0);
  assert.equal(waitOf(500, '4'), 4000);
});

test('only a JSON body is stored as the result', () => {
  const resultOf = (said: Said): unknown => {
    const outcome = judge(said);
    return outcome.outcome === 'done' ? outcome.result : assert.fail(outcome.outcome);
  };
  assert.deepEqual(resultOf({ body: '{"summary":"short"}' }), { summary: 'short' });
  assert.deepEqual(resultOf({ body: '\uFEFF[1, 2]' }), [1, 2]);
  assert.equal(resultOf({ body: 'null' }), null);
  for (const body of ['', 'done', '<html>', '{"a":', Buffer.from([0x22, 0xff, 0x22])])
    assert.equal(resultOf({ body }), undefined);
  assert.equal(resultOf({ body: '{}', isBodyCut: true }), undefined);
  assert.equal(resultOf({ body: `"${'a'.repeat(maxResultBytes)}"` }), undefined);
  assert.equal(resultOf({ body: '['.repeat(30_000) + ']'.repeat(30_000) }), undefined);
});

test('only characters that PostgreSQL cannot store are replaced', () => {
  const cases: readonly (readonly [string, unknown])[] = [
    ['"a\\u0000b"', 'a\uFFFDb'],
    ['"\\u0000\\u0000"', '\uFFFD\uFFFD'],
    ['"\\\\u0000"', '\\u0000'],
    ['"\\\\\\u0000"', '\\\uFFFD'],
    ['"\\ud800x"', '\uFFFDx'],
    ['"\\ud83d\\ude00"', '\u{1F600}'],
    ['{"\\u0000": {"b": ["\\udfff", 1]}}', { '\uFFFD': { b: ['\uFFFD', 1] } }],
    ['"\\u0001\\n"', '\u0001\n'],
    [`{"a": "\\u0000", "b": ${'['.repeat(600)}${']'.repeat(600)}}`, undefined],
  ];
  for (const [body, result] of cases) assert.deepEqual(judge({ body }), { outcome: 'done', result }, body);
});

test('every result can be stored by PostgreSQL, and every detail is one short line', () => {
  const text = fc.string({ unit: fc.constantFrom('\0', '\\', '"', 'u0000', 'a', '\ud800', '\udc00') });
  const said = fc.record({
    status: fc.integer({ min: 200, max: 999 }),
    body: fc.oneof(
      fc.json({ stringUnit: 'binary' }),
      fc.array(text).map((texts) => JSON.stringify(texts)),
      fc.string(),
    ),
  });
  fc.assert(
    fc.property(said, (one) => {
      const outcome = judge(one);
      if (outcome.outcome === 'done') {
        const written = JSON.stringify(outcome.result) ?? 'null';
        JSON.parse(written, (key, value: unknown) => {
          for (const part of [key, value])
            if (typeof part === 'string') assert.ok(part.isWellFormed() && !part.includes('\0'));
          return value;
        });
      } else assert.ok(outcome.detail.length <= 300 && !/[\r\n\0]/.test(outcome.detail));
    }),
  );
});
