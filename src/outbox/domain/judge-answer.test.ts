import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { sha256Of } from '../../kernel/canonical-json.ts';
import type { ConflictProfile } from './destination-settings.ts';
import type { HttpAnswer } from '../../kernel/http-answer.ts';
import { judgeAnswer, type AnswerProfile } from './judge-answer.ts';
import type { SendOutcome } from './order.ts';

const key = '01JABCXYZ-ULID-5678';
const now = new Date('2025-08-24T03:40:10Z');
const profile: AnswerProfile = { response: 'json', conflict: undefined, outsideIdField: 'broker_order_id' };

type Said = Partial<Omit<HttpAnswer, 'body'>> & Readonly<{ body?: string | Buffer }>;

function judge({ body = '', ...said }: Said, changes: Partial<AnswerProfile> = {}): SendOutcome {
  const answer = { status: 200, headers: {}, isBodyCut: false, ...said, body: Buffer.from(body) };
  return judgeAnswer(answer, { ...profile, ...changes }, key, now);
}

function answerIn(outcome: SendOutcome) {
  assert.equal(outcome.end, 'sent');
  return outcome.answer;
}

const conflicting = (conflict: ConflictProfile, said: Said): SendOutcome =>
  judge({ status: 409, ...said }, { conflict });

test('a 2xx with the same key, without a key or with an empty body is sent', () => {
  for (const body of [
    `{"idempotency_key":"${key}"}`,
    '{"idempotency_key":null}',
    '{}',
    '[]',
    '"ok"',
    '',
    ' \r\n',
  ])
    for (const status of [200, 201, 202, 204, 299])
      assert.equal(judge({ status, body }).end, 'sent', `${status} ${body}`);
});

test('a 2xx with another key, without JSON or with a cut body is unknown', () => {
  const cases: readonly (readonly [Said, string])[] = [
    [
      { body: '{"idempotency_key":"another-key"}' },
      'HTTP 200, for another idempotency_key: {"idempotency_key":"another-key"}',
    ],
    [
      { body: '{"idempotency_key":12345678}' },
      'HTTP 200, for another idempotency_key: {"idempotency_key":12345678}',
    ],
    [{ body: '<html>Please log in</html>' }, 'HTTP 200, not JSON: <html>Please log in</html>'],
    [{ body: Buffer.from([0x22, 0xff, 0x22]) }, 'HTTP 200, not JSON: "\uFFFD"'],
    [{ body: '{}', isBodyCut: true }, 'HTTP 200, larger than the response limit: {}'],
  ];
  for (const [said, detail] of cases)
    assert.deepEqual(judge(said), { end: 'unknown', code: 'UNKNOWN', detail });
});

test('with `response: any` every 2xx is sent, whatever its body', () => {
  for (const said of [
    { body: '<html>' },
    { body: `{"idempotency_key":"another"}` },
    { body: '{', isBodyCut: true },
  ])
    assert.equal(judge(said, { response: 'any' }).end, 'sent');
});

test('a key that an answer contains as a number counts', () => {
  const answer = {
    status: 200,
    headers: {},
    isBodyCut: false,
    body: Buffer.from('{"idempotency_key":12345678}'),
  };
  assert.equal(judgeAnswer(answer, profile, '12345678', now).end, 'sent');
});

test('JSON may start with a byte order mark', () => {
  assert.equal(answerIn(judge({ body: '\uFEFF{"broker_order_id":"b-1"}' })).outsideId, 'b-1');
});

test('the digest of canonical JSON does not depend on the notation', () => {
  const spelled = answerIn(judge({ body: '{ "b": 1.0, "a": [1e2] }' }));
  assert.equal(spelled.digest, sha256Of('{"a":[100],"b":1}'));
  assert.equal(answerIn(judge({ body: 'plain' }, { response: 'any' })).digest, sha256Of('plain'));
  assert.equal(answerIn(judge({})).digest, sha256Of(''));
});

test('JSON without a canonical form has the digest of its bytes', () => {
  for (const body of ['{"a":1e400}', String.raw`{"a":"\ud800"}`])
    assert.equal(answerIn(judge({ body })).digest, sha256Of(body));
  for (const depth of [513, 50_000]) {
    const deep = `${'[ '.repeat(depth)}${']'.repeat(depth)}`;
    assert.equal(answerIn(judge({ body: deep })).digest, sha256Of(deep));
  }
});

test('the outside id is the configured field, as written', () => {
  const cases: readonly (readonly [string, string | null])[] = [
    ['{"broker_order_id":"brk-8842"}', 'brk-8842'],
    ['{"broker_order_id":42}', '42'],
    ['{"broker_order_id":12345678901234567890}', '12345678901234567890'],
    ['{"broker_order_id":1.10}', '1.10'],
    ['{"broker_order_id":"a\\u0000b"}', 'a\uFFFDb'],
    [`{"broker_order_id":"${'x'.repeat(300)}"}`, 'x'.repeat(200)],
    ['{"broker_order_id":""}', null],
    ['{"broker_order_id":null}', null],
    ['{"broker_order_id":{"id":1}}', null],
    ['{"order":{"broker_order_id":1}}', null],
    ['[]', null],
    ['', null],
  ];
  for (const [body, id] of cases) assert.equal(answerIn(judge({ body })).outsideId, id, body);
});

test('a field may be nested, and a name that contains a dot is looked up first', () => {
  const idIn = (body: string): string | null =>
    answerIn(judge({ body }, { outsideIdField: 'order.id' })).outsideId;
  assert.equal(idIn('{"order":{"id":"deep"}}'), 'deep');
  assert.equal(idIn('{"order.id":"flat","order":{"id":"deep"}}'), 'flat');
  assert.equal(idIn('{"order":null}'), null);
  assert.equal(answerIn(judge({ body: '{}' }, { outsideIdField: 'constructor.name' })).outsideId, null);
});

test('4xx answers are refused with their detail', () => {
  for (const status of [400, 404, 405, 410, 413, 415, 418, 422, 425, 451, 300, 301, 302, 304, 307, 308])
    assert.deepEqual(judge({ status, body: '{"error":"no"}' }), {
      end: 'refused',
      code: 'BAD_REQUEST',
      detail: `HTTP ${status}: {"error":"no"}`,
    });
  for (const status of [401, 403])
    assert.deepEqual(judge({ status }), { end: 'refused', code: 'UNAUTHORIZED', detail: `HTTP ${status}` });
});

test('408 and every 5xx except 503 are unknown', () => {
  const open = (status: number, code: string): void =>
    assert.deepEqual(judge({ status, body: 'oops' }), {
      end: 'unknown',
      code,
      detail: `HTTP ${status}: oops`,
      retryAfterMs: undefined,
    });
  open(408, 'NETWORK_TIMEOUT');
  for (const status of [500, 501, 502, 504, 505, 507, 520, 522, 524, 599]) open(status, 'BROKER_5XX');
  open(999, 'UNKNOWN');
});

test('429 and 503 had no effect, and accept both forms of Retry-After', () => {
  const asked = (header: string | readonly string[] | undefined): SendOutcome['end'] | number | undefined => {
    const outcome = judge({ status: 429, headers: { 'retry-after': header } });
    assert.equal(outcome.end, 'limited');
    return outcome.retryAfterMs;
  };
  assert.equal(asked('7'), 7000);
  assert.equal(asked('Sun, 24 Aug 2025 03:40:40 GMT'), 30_000);
  assert.equal(asked('Sun, 24 Aug 2025 03:40:00 GMT'), 0);
  assert.equal(asked('86400'), 3_600_000);
  assert.equal(asked('Mon, 25 Aug 2025 03:40:10 GMT'), 3_600_000);
  assert.equal(asked(['3', '9']), 9000);
  assert.equal(asked('soon'), undefined);
  assert.equal(asked(undefined), undefined);
  assert.deepEqual(judge({ status: 503, headers: { 'retry-after': '2' } }), {
    end: 'failed',
    code: 'BROKER_5XX',
    detail: 'HTTP 503',
    retryAfterMs: 2000,
  });
});

test('a 409 that means processed is sent, with a digest that says so', () => {
  const body = '{"broker_order_id":"b-7"}';
  assert.deepEqual(conflicting('processed', { body }), {
    end: 'sent',
    answer: { status: 409, digest: 'sha256:from-conflict', outsideId: 'b-7' },
    isConflict: true,
  });
});

test('a 409 that means running is retried, not before its Retry-After', () => {
  assert.deepEqual(conflicting('running', { headers: { 'retry-after': '5' } }), {
    end: 'failed',
    code: 'CONFLICT_RUNNING',
    detail: 'HTTP 409',
    retryAfterMs: 5000,
  });
});

test('the profile reads a 409 from a field or header, and other values are unknown', () => {
  const words = { processed: ['already_processed', '17'], running: ['in_progress'] };
  const byField: ConflictProfile = { in: { field: 'error.code' }, ...words };
  const byHeader: ConflictProfile = { in: { header: 'X-Conflict' }, ...words };
  const field = (code: string): SendOutcome['end'] =>
    conflicting(byField, { body: `{"error":{"code":${code}}}` }).end;
  const header = (value: string | readonly string[]): SendOutcome['end'] =>
    conflicting(byHeader, { headers: { 'x-conflict': value } }).end;
  assert.deepEqual(
    [field('"already_processed"'), field('17'), field('"in_progress"')],
    ['sent', 'sent', 'failed'],
  );
  assert.deepEqual(
    [field('"ALREADY_PROCESSED"'), field('null'), field('{}')],
    ['unknown', 'unknown', 'unknown'],
  );
  assert.deepEqual(
    [header('already_processed'), header(['in_progress']), header('')],
    ['sent', 'failed', 'unknown'],
  );
  assert.equal(conflicting(byField, { body: 'not JSON' }).end, 'unknown');
  assert.equal(conflicting(byField, { body: '{"error":{"code":17}}', isBodyCut: true }).end, 'unknown');
  assert.equal(judge({ status: 409 }).end, 'unknown');
});

test('a detail is one short line that PostgreSQL can store', () => {
  const outcome = judge({ status: 500, body: `a\0b\r\n\tc${'é'.repeat(500)}` });
  assert.equal(outcome.end, 'unknown');
  assert.equal(outcome.detail, `HTTP 500: a\uFFFDb c${'é'.repeat(195)}`);
});

test('every possible answer has an outcome', () => {
  const said = fc.record({
    status: fc.integer({ min: 200, max: 999 }),
    body: fc.oneof(
      fc.json(),
      fc.string(),
      fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    ),
    headers: fc.dictionary(fc.constantFrom('retry-after', 'x'), fc.oneof(fc.string(), fc.array(fc.string()))),
    isBodyCut: fc.boolean(),
  });
  const response = fc.constantFrom('json' as const, 'any' as const);
  fc.assert(
    fc.property(said, response, (said, response) => {
      const outcome = judge(said, { response });
      if (outcome.end === 'sent') assert.ok(said.status < 300);
      if (!('detail' in outcome)) return;
      assert.ok(outcome.detail.length <= 450 && outcome.detail.isWellFormed());
      assert.ok(!/[\r\n\0]/.test(outcome.detail));
    }),
  );
});
