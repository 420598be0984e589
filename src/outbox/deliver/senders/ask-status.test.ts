import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { httpSettings } from '../../../../tests/support/destinations.ts';
import { startPartner, type Partner, type PartnerOptions } from '../../../../tests/support/partner.ts';
import { onRequest, serveRaw, unusedPort } from '../../../../tests/support/raw-server.ts';
import type { Backoff } from '../../../kernel/backoff.ts';
import type { HttpSettings } from '../../domain/destination-settings.ts';
import { createStatusQuestion, type StatusQuestion } from './ask-status.ts';

const quick: Backoff = { initialMs: 1, maxMs: 1, jitter: 0 };
const key = 'order-0001';

async function partnerFor(t: TestContext, options: PartnerOptions = {}): Promise<Partner> {
  const partner = await startPartner(options);
  t.after(() => partner.stop());
  return partner;
}

function questionTo(
  t: TestContext,
  statusUrl: string,
  changes: Partial<HttpSettings> = {},
  backoff: Backoff = quick,
): StatusQuestion['ask'] {
  const settings = { ...httpSettings({ url: 'http://127.0.0.1:1/orders', ...changes }), statusUrl };
  const question = createStatusQuestion(settings, { backoff });
  t.after(() => question.close());
  return question.ask;
}

/** Answers with these in turn, and then always with the last one. */
async function answering(t: TestContext, ...answers: readonly string[]) {
  let asked = 0;
  const paths: string[] = [];
  const server = await serveRaw(t, (socket) => {
    socket.once('data', (bytes) => {
      paths.push(String(bytes).split(' ')[1] ?? '');
      socket.end(answers[Math.min(asked++, answers.length - 1)] ?? '');
    });
  });
  return { url: `http://127.0.0.1:${server.port}/status/{key}`, asked: () => asked, paths };
}

const reply = (status: number, body: string): string =>
  `HTTP/1.1 ${status} Said\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

test('a partner that knows the order answers done with its id, otherwise absent', async (t) => {
  const partner = await partnerFor(t);
  const ask = questionTo(t, partner.statusUrl);
  assert.deepEqual(await ask(key), { known: 'absent' });
  partner.ledger.add(key, '{}');
  const answer = await ask(key);
  assert.equal(answer.known, 'done');
  assert.equal(answer.outcome.answer.status, 200);
  assert.match(answer.outcome.answer.outsideId ?? '', /^brk-/);
  assert.equal(answer.outcome.isConflict, false);
});

test('with a profile, only the value of the field decides', async (t) => {
  const status = { field: 'order.state', done: ['filled', 'open'], absent: ['unknown'] };
  const cases: readonly (readonly [number, string, string])[] = [
    [200, '{"order":{"state":"filled"}}', 'done'],
    [200, '{"order":{"state":"unknown"}}', 'absent'],
    [404, '{"order":{"state":"unknown"}}', 'absent'],
    [200, '{"order":{"state":"running"}}', 'silent'],
    [200, '{}', 'silent'],
    [404, '{}', 'silent'],
    [404, '{"order":{"state":"filled"}}', 'silent'],
    [500, '{"order":{"state":"filled"}}', 'silent'],
    [500, '{"order":{"state":"unknown"}}', 'silent'],
    [409, '{"order":{"state":"unknown"}}', 'silent'],
  ];
  for (const [code, body, known] of cases) {
    const server = await answering(t, reply(code, body));
    const answer = await questionTo(t, server.url, { status, conflict: 'processed' })(key);
    assert.equal(answer.known, known, `${code} ${body}`);
  }
});

test('an answer that proves nothing for a send proves nothing for a status question', async (t) => {
  for (const answer of [
    reply(200, '<html>log in</html>'),
    reply(200, '{"idempotency_key":"another-order"}'),
    reply(200, `{"padding":"${'x'.repeat(70_000)}"}`),
    reply(302, ''),
    reply(401, '{}'),
    reply(410, '{}'),
    reply(429, '{}'),
    reply(500, '{}'),
    'not HTTP',
    'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{',
    'HTTP/1.1 404 No\r\ncontent-length: 9\r\n\r\n{',
  ]) {
    const server = await answering(t, answer);
    assert.equal((await questionTo(t, server.url)(key)).known, 'silent', answer.slice(0, 99));
    assert.equal(server.asked(), 3, answer.slice(0, 99));
  }
});

test('an answer counts in any of three attempts, and there is no fourth', async (t) => {
  const down = reply(500, 'oops');
  const third = await answering(t, down, 'nonsense', reply(404, '{}'));
  assert.deepEqual(await questionTo(t, third.url)(key), { known: 'absent' });
  const fourth = await answering(t, down, down, down, reply(404, '{}'));
  assert.deepEqual(await questionTo(t, fourth.url)(key), { known: 'silent', detail: 'HTTP 500: oops' });
  assert.equal(fourth.asked(), 3);
});

test('the question ends within the timeout, even without an answer or with long pauses', async (t) => {
  const mute = await serveRaw(t, (socket) => onRequest(socket, () => {}));
  const startedAtMs = performance.now();
  const unanswered = await questionTo(t, `http://127.0.0.1:${mute.port}/{key}`, { timeoutMs: 150 })(key);
  assert.equal(unanswered.known, 'silent');
  const down = await answering(t, reply(500, ''));
  const slow: Backoff = { initialMs: 60_000, maxMs: 60_000, jitter: 0 };
  const asked = await questionTo(t, down.url, { timeoutMs: 150 }, slow)(key);
  assert.deepEqual([asked.known, down.asked()], ['silent', 1]);
  assert.ok(performance.now() - startedAtMs < 2000);
});

test('an unreachable partner is silent', async (t) => {
  const port = await unusedPort();
  const answer = await questionTo(t, `http://127.0.0.1:${port}/{key}`)(key);
  assert.deepEqual(answer, { known: 'silent', detail: `connect ECONNREFUSED 127.0.0.1:${port}` });
});

test('the key is URL-encoded wherever the URL contains it, and the configured headers are sent', async (t) => {
  const server = await answering(t, reply(404, ''));
  const url = server.url.replace('{key}', '{key}/x?again={key}&v=1');
  await questionTo(t, url)('a/../b?c#d%&$&');
  assert.deepEqual(server.paths, [
    '/status/a%2F..%2Fb%3Fc%23d%25%26%24%26/x?again=a%2F..%2Fb%3Fc%23d%25%26%24%26&v=1',
  ]);
  const unreadable = () => {
    throw new Error('away');
  };
  const answer = await questionTo(t, server.url, { headers: { authorization: unreadable } })(key);
  assert.deepEqual(answer, { known: 'silent', detail: 'the header authorization cannot be read: away' });
});

test('the key must not be part of the host', () => {
  const settings = { ...httpSettings({ url: 'http://127.0.0.1:1' }), statusUrl: 'http://{key}.example.org/' };
  assert.throws(() => createStatusQuestion(settings), /in the path and the query only/);
});

test('a failing partner is asked three times, a hanging one once', async (t) => {
  const partner = await partnerFor(t, { script: { status: 'error' } });
  partner.ledger.add(key, '{}');
  assert.equal((await questionTo(t, partner.statusUrl)(key)).known, 'silent');
  assert.equal(partner.questionCount(), 3);
  partner.setScript({ status: 'hang' });
  const patient: Backoff = { initialMs: 50, maxMs: 50, jitter: 0 };
  const ask = questionTo(t, partner.statusUrl, { timeoutMs: 150 }, patient);
  assert.equal((await ask(key)).known, 'silent');
  assert.equal(partner.questionCount(), 4);
});
