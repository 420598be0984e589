import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as fc from 'fast-check';
import { createTestServer, talk } from '../../../tests/support/test-server.ts';
import type { ErrorBody } from './errors/error-answer.ts';

const { server, logged } = createTestServer();
before(() => server.start());
after(() => server.stop(AbortSignal.timeout(1000)));

/** Whatever was sent, an answer is a success, a redirect, or an error of the client's in the one form. */
async function assertDecentAnswer(request: Buffer): Promise<void> {
  const answer = await talk(server, request, { andClose: true });
  const [head = '', rest = ''] = answer.split('\r\n\r\n', 2);
  if (head === '') return;
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
  assert.ok(status < 500, answer);
  if (status < 400 || request.subarray(0, 4).toString() === 'HEAD') return;
  const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1]);
  const { error } = JSON.parse(Buffer.from(rest, 'latin1').subarray(0, length).toString()) as ErrorBody;
  const requestId = /^x-request-id: (.*)$/im.exec(head)?.[1]?.trim();
  assert.match(error.code, /^SYS_[A-Z]+(?:_[A-Z]+)+$/);
  assert.equal(error.request_id.trim(), requestId);
  assert.ok(error.message.length > 0 && error.message.length < 1500);
  for (const { field, reason, message } of error.details) {
    assert.ok(field.length <= 200 && field.isWellFormed());
    assert.match(reason, /^[a-z_]+$/);
    assert.ok(message.length > 0);
  }
}

const nasty = fc.constantFrom(
  '%zz', '%', '%00', '%c0%80', '%ed%a0%80', '%2f', '..', '%2e%2e', '__proto__', 'constructor', 'prototype',
  '[]', '[x]', '?', '#', ';', '&', '=', '+', '//', '\\', ':id', '*', '{{', '\u00ff', "'", '"', '1e3', '-1', 'null',
); // prettier-ignore
const segment = fc.oneof(nasty, fc.string({ unit: 'grapheme-ascii', maxLength: 8 }), fc.constant('things'));
const path = fc
  .tuple(
    fc.constantFrom('/', '/api/v1/things', '/api/v1/things/', '/healthz', '/readyz', '/docs', ''),
    fc.array(segment, { maxLength: 4 }),
  )
  .map(([start, rest]) => start + rest.join('/'));
const query = fc.array(
  fc.tuple(fc.oneof(nasty, fc.constantFrom('page', 'page_size', 'cursor', 'status', 'topic')), segment),
  { maxLength: 4 },
);
const target = fc
  .tuple(path, query)
  .map(([start, pairs]) => [start, pairs.map(([key, value]) => `${key}=${value}`).join('&')].join('?'));
const method = fc.constantFrom(
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'QUERY',
  'PROPFIND',
);
const contentType = fc.constantFrom(
  'application/json', 'application/json; charset=latin1', 'text/plain', 'multipart/form-data', 'x', ';', '', 'application/problem+json',
); // prettier-ignore
const json = fc.jsonValue({ stringUnit: 'binary' }).map((value) => JSON.stringify(value));
const thing = fc
  .record(
    {
      name: fc.string({ unit: 'binary' }),
      kind: fc.string(),
      value: fc.jsonValue(),
      ['__proto__']: fc.anything(),
    },
    { requiredKeys: [] },
  )
  .map((value) => JSON.stringify(value) ?? '');
const body = fc.oneof(
  fc.constant(Buffer.alloc(0)),
  fc.oneof(json, thing, fc.string()).map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
);
const headerValue = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  maxLength: 40,
});

/** Without what no client library would put on the wire. */
const printable = (value: string) => value.replace(/[^\x20-\x7e\xa0-\xff]/g, '');

test('a well-formed request with hostile content never causes a 500', async () => {
  const headers = fc
    .record({
      'content-type': contentType,
      'x-request-id': headerValue,
      'x-actor': headerValue,
      traceparent: headerValue,
    })
    .map((fields) => Object.entries(fields).map(([name, value]) => `${name}: ${printable(value)}`));
  const request = fc.tuple(method, target, headers, body).map(([verb, url, fields, payload]) => {
    const start = `${verb} ${printable(url).replaceAll(' ', '+')} HTTP/1.1`;
    const lines = [start, 'host: x', 'connection: close', `content-length: ${payload.length}`, ...fields];
    return Buffer.concat([Buffer.from([...lines, '', ''].join('\r\n'), 'latin1'), payload]);
  });
  await fc.assert(fc.asyncProperty(request, assertDecentAnswer), { numRuns: 600 });
});

test('malformed HTTP never causes a 500, a hanging connection or another error body', async () => {
  const line = fc.oneof(
    fc.tuple(method, target).map(([verb, url]) => `${verb} ${url} HTTP/1.1`),
    fc.tuple(fc.string(), fc.string(), fc.string()).map((words) => words.join(' ')),
  );
  const name = fc.constantFrom(
    'host',
    'content-length',
    'transfer-encoding',
    'expect',
    'upgrade',
    'connection',
  );
  const header = fc.oneof(
    fc.tuple(name, headerValue).map(([name, value]) => `${name}: ${value}`),
    fc.constantFrom('transfer-encoding: chunked', 'content-length: 3', 'host: [', 'upgrade: h2c'),
    headerValue,
  );
  const request = fc
    .tuple(line, fc.array(header, { maxLength: 5 }), body)
    .map(([start, headers, payload]) => {
      const head = [start, 'host: x', 'connection: close', ...headers, '', ''].join('\r\n');
      return Buffer.concat([Buffer.from(head, 'latin1'), payload]);
    });
  await fc.assert(fc.asyncProperty(request, assertDecentAnswer), { numRuns: 600 });
});

test('none of it was logged as a server error', () => {
  const failures = logged().filter((line) => line['level'] === 'error' || line['level'] === 'fatal');
  assert.deepEqual(failures, []);
});
