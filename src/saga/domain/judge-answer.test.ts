import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HttpAnswer } from '../../kernel/http-answer.ts';
import {
  judgeCallError,
  judgeGrpcAnswer,
  judgeHttpAnswer,
  judgeMappingError,
  logStatusOf,
  type Answer,
  type GrpcAnswer,
} from './judge-answer.ts';

const now = new Date('2025-08-24T03:40:10Z');

type Said = Partial<Omit<HttpAnswer, 'body'>> & Readonly<{ body?: string | Buffer }>;

function http(status: number, { body = '{}', ...said }: Said = {}): Answer {
  return judgeHttpAnswer({ status, headers: {}, isBodyCut: false, ...said, body: Buffer.from(body) }, now);
}

function grpc(code: number, said: Partial<GrpcAnswer> = {}): Answer {
  return judgeGrpcAnswer({ code, details: '', trailers: {}, message: undefined, ...said }, now);
}

function outputOf(answer: Answer): unknown {
  assert.ok(answer.class === 'done', JSON.stringify(answer));
  return answer.output;
}

function detailOf(answer: Answer): string {
  assert.ok(answer.class === 'unknown', JSON.stringify(answer));
  return answer.detail;
}

test('every HTTP status has its class', () => {
  const classes: Record<string, number[]> = {};
  for (let status = 100; status < 700; status += 1) (classes[http(status).class] ??= []).push(status);
  const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);
  const certain = new Set([408, 409, 422, 425, 429]);
  assert.deepEqual(classes, {
    unknown: [...range(100, 200), 408, 425, 429, ...range(500, 700)],
    done: range(200, 300).filter((status) => status !== 202),
    working: [202],
    defect: range(300, 500).filter((status) => !certain.has(status)),
    refused: [409, 422],
  });
});

test('every gRPC code has its class', () => {
  const classes = Array.from({ length: 18 }, (_, code) => grpc(code).class);
  const u = 'unknown';
  const d = 'defect';
  const r = 'refused';
  assert.deepEqual(classes, ['done', u, u, d, u, d, r, d, u, r, r, d, d, u, u, u, d, u]);
});

test('UNAVAILABLE is working only where its trailer says so, and no other code is', () => {
  const trailers = { 'saga-result': 'working', 'retry-after': '3' };
  assert.deepEqual(grpc(14, { trailers }), { class: 'working', output: null, retryAfterMs: 3000 });
  assert.equal(grpc(14, { trailers: { 'saga-result': ['working'] } }).class, 'working');
  assert.equal(grpc(14, { trailers: { 'saga-result': 'already-compensated' } }).class, 'unknown');
  assert.equal(grpc(13, { trailers }).class, 'unknown');
});

test('Retry-After is read in both forms, of 202 and of failures, and is an hour at most', () => {
  const asked = (status: number, header: string): number | undefined => {
    const answer = http(status, { headers: { 'retry-after': header } });
    return answer.class === 'done' ? undefined : answer.retryAfterMs;
  };
  assert.equal(asked(202, '7'), 7000);
  assert.equal(asked(503, 'Sun, 24 Aug 2025 03:40:40 GMT'), 30_000);
  assert.equal(asked(429, '86400'), 3_600_000);
  assert.equal(asked(429, 'soon'), undefined);
});

test('an empty success is null, and what is kept can be stored', () => {
  for (const body of ['', ' \r\n', 'null']) assert.equal(outputOf(http(200, { body })), null);
  assert.equal(outputOf(grpc(0)), null);
  const hostile = String.raw`{"a\u0000":["\ud800", {"__proto__": 1.5}]}`;
  const kept = outputOf(http(201, { body: hostile }));
  assert.equal(JSON.stringify(kept), '{"a\uFFFD":["\uFFFD",{"__proto__":1.5}]}');
  assert.deepEqual(outputOf(grpc(0, { message: { 'a\0': '\ud800' } })), { 'a\uFFFD': '\uFFFD' });
});

test('a 2xx that is no JSON, too large or too deep proves nothing', () => {
  const large = `"${'x'.repeat(262_144)}"`;
  const deep = `${'['.repeat(200_000)}${']'.repeat(50_000)}`;
  const nested = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
  assert.equal(detailOf(http(200, { body: '<html>' })), 'HTTP 200, not JSON: <html>');
  assert.match(detailOf(http(200, { body: Buffer.from([0x22, 0xff, 0x22]) })), /not JSON/);
  assert.match(detailOf(http(200, { body: '{}', isBodyCut: true })), /too large/);
  assert.match(detailOf(http(200, { body: large })), /^HTTP 200, too large/);
  assert.match(detailOf(http(200, { body: deep })), /nested too deeply/);
  assert.match(detailOf(http(200, { body: `[${'1e308,'.repeat(1000)}1]` })), /too large/);
  assert.match(detailOf(http(200, { body: nested })), /nested too deeply/);
  assert.match(detailOf(grpc(0, { message: large })), /too large/);
});

test('a whole number that would become another one is not kept as that', () => {
  assert.match(detailOf(http(200, { body: '{"id":12345678901234567890}' })), /number too large/);
  assert.match(detailOf(http(200, { body: '{"id":1e400}' })), /number too large/);
  assert.deepEqual(
    outputOf(http(200, { body: '[9007199254740991,3.14159265358979323846]' })),
    [9007199254740991, 3.141592653589793],
  );
});

test('only a refused connection and a name that is not resolved were certainly not sent', () => {
  const fail = (code: string): Error => Object.assign(new Error(code), { code });
  for (const code of ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN']) {
    assert.equal(judgeCallError(fail(code)).isUnsent, true);
    assert.equal(judgeCallError(new TypeError('fetch failed', { cause: fail(code) })).isUnsent, true);
  }
  for (const code of ['ECONNRESET', 'ETIMEDOUT', 'EPIPE', 'UND_ERR_HEADERS_TIMEOUT'])
    assert.equal(judgeCallError(fail(code)).isUnsent, false);
  const circular = new Error('circle');
  circular.cause = circular;
  assert.equal(judgeCallError(circular).isUnsent, false);
  const unsent = grpc(14, { isUnsent: true });
  assert.ok(unsent.class === 'unknown' && unsent.isUnsent);
  assert.ok(!('isUnsent' in grpc(0, { isUnsent: true })));
});

test('the log says FAILED for what was answered, and TIMEOUT where nobody did', () => {
  const logged = (answer: Answer): string => (answer.class === 'working' ? '' : logStatusOf(answer));
  for (const status of [400, 408, 409, 429, 500, 503]) assert.equal(logged(http(status)), 'FAILED');
  assert.equal(logged(http(200, { body: '<' })), 'FAILED');
  assert.equal(logged(http(200)), 'SUCCESS');
  assert.equal(logged(judgeCallError(new Error('socket hang up'))), 'TIMEOUT');
  assert.equal(logged(grpc(4)), 'TIMEOUT');
  assert.equal(logged(grpc(13)), 'FAILED');
  assert.equal(logged(judgeMappingError('steps.a.id is missing')), 'FAILED');
});

test('what cannot be mapped is a defect, and was not sent', () => {
  assert.deepEqual(judgeMappingError('a\0b'), {
    class: 'defect',
    detail: 'a\uFFFDb',
    isTimeout: false,
    isUnsent: true,
  });
});
