import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { createClientToken } from './client-token.ts';

type Answer = Readonly<{ status?: number; body: unknown }>;
type Asked = Readonly<{ authorization: string | undefined; body: string }>;

async function tokenEndpoint(t: TestContext, answers: readonly Answer[]) {
  const asked: Asked[] = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await text(request);
    const { status = 200, body: given } = answers[Math.min(asked.length, answers.length - 1)] ?? { body: {} };
    asked.push({ authorization: request.headers.authorization, body });
    response.writeHead(status).end(typeof given === 'string' ? given : JSON.stringify(given));
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
  const client = async () => ({ username: 'kafka client', password: 'a:b' });
  return { asked, token: createClientToken({ url, scope: 'kafka', client }) };
}

test('connections that open at once share one request, and a token is used until shortly before its end', async (t) => {
  const { asked, token } = await tokenEndpoint(t, [
    { body: { access_token: 'short', expires_in: 29 } },
    { body: { access_token: 'long', expires_in: 3600 } },
  ]);
  assert.deepEqual(await Promise.all([token(), token(), token()]), ['short', 'short', 'short']);
  assert.equal(asked.length, 1);
  assert.equal(await token(), 'long');
  assert.equal(await token(), 'long');
  assert.equal(asked.length, 2);
});

test('the client authenticates by its encoded id and secret, and names the scope', async (t) => {
  const { asked, token } = await tokenEndpoint(t, [{ body: { access_token: 'a', expires_in: 60 } }]);
  await token();
  const [scheme, pair = ''] = asked[0]?.authorization?.split(' ') ?? [];
  assert.equal(scheme, 'Basic');
  assert.equal(Buffer.from(pair, 'base64').toString(), 'kafka%20client:a%3Ab');
  assert.equal(asked[0]?.body, 'grant_type=client_credentials&scope=kafka');
});

test('an answer without a usable token is an error that shows no secret, and is asked for again', async (t) => {
  const bad: readonly Answer[] = [
    { status: 401, body: { error: 'invalid_client' } },
    { body: 'not JSON' },
    { body: 'null' },
    { body: {} },
    { body: { access_token: 5 } },
    { body: { access_token: 'x\u0001auth=other' } },
  ];
  const { token } = await tokenEndpoint(t, [...bad, { body: { access_token: 'good', expires_in: 'soon' } }]);
  for (const _ of bad)
    await assert.rejects(token(), (error: Error) => {
      assert.match(error.message, /^no token for Kafka from http/);
      assert.doesNotMatch(error.message, /a:b|a%3Ab/);
      return true;
    });
  assert.equal(await token(), 'good');
});
