import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { ApiError, JsonText } from '../../client-http/index.ts';
import { createApiClient, type ApiCall } from './api-client.ts';

const servers = new Set<ReturnType<typeof createServer>>();
after(() => {
  for (const server of servers) server.close();
});

async function clientOf(answer: RequestListener, { folder = '', actor = 'me' } = {}) {
  const server = createServer(answer);
  servers.add(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = new URL(`http://127.0.0.1:${port}${folder}`);
  return createApiClient({ url, actor });
}

const json = { 'content-type': 'application/json; charset=utf-8' };

async function errorOf(answer: RequestListener, call: ApiCall): Promise<ApiError> {
  const client = await clientOf(answer);
  const error: unknown = await client.call(call).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ApiError);
  return error;
}

test('the text of an answer is unchanged', async () => {
  const text = '{"n": 12345678901234567890.10}';
  const client = await clientOf((_request, response) => response.writeHead(200, json).end(text));
  assert.equal((await client.call({ id: 'listTopics', input: {} })).text, text);
});

test('path segments are encoded, undefined values are not sent, and the URL may have a path', async () => {
  let path = '';
  const client = await clientOf(
    (request, response) => {
      path = request.url ?? '';
      response.writeHead(200, json).end('{}');
    },
    { folder: '/redrive/' },
  );
  await client.call({
    id: 'verifySource',
    input: { topic: 'a/b?c', partition: 0, from: '注 文', to: undefined },
  });
  assert.equal(
    path,
    `/redrive/api/v1/dlq/sources/a%2Fb%3Fc/0/verify?from=${encodeURIComponent('注').concat('+')}${encodeURIComponent('文')}`,
  );
});

test('the actor is sent as UTF-8, with and without a body', async () => {
  const actors: string[] = [];
  const client = await clientOf(
    (request, response) => {
      actors.push(Buffer.from(String(request.headers['x-actor']), 'latin1').toString());
      response.writeHead(200, json).end('{}');
    },
    { actor: '太郎@host' },
  );
  await client.call({ id: 'listTopics', input: {} });
  await client.call({ id: 'cancelJob', input: { id: '7', reason: '理由' } });
  assert.deepEqual(actors, ['太郎@host', '太郎@host']);
});

test('a JSON text is sent unchanged, with the idempotency key', async () => {
  let asked = '';
  const client = await clientOf((request, response) => {
    request.setEncoding('utf8').on('data', (chunk: string) => (asked += chunk));
    request.on('end', () =>
      response.writeHead(201, json).end(`{"key":"${request.headers['idempotency-key'] as string}"}`),
    );
  });
  const payload = '{ "n": 1.0, "n": 12345678901234567890 }';
  const input = { workflow_name: 'buy', payload: new JsonText(payload) };
  const answer = await client.call({ id: 'startSaga', input, idempotencyKey: 'k' });
  const body = `{"workflow_name":"buy","payload":${payload}}`;
  assert.deepEqual([asked, answer.status, answer.value], [body, 201, { key: 'k' }]);
});

test('an error carries the code, the message, the details and the request id', async () => {
  const details = [{ field: 'page', reason: 'minimum', message: 'must be >= 1' }];
  const error = await errorOf(
    (_request, response) =>
      response
        .writeHead(400, json)
        .end(JSON.stringify({ error: { code: 'SYS_DLQ_X', message: 'no', request_id: 'req_1', details } })),
    { id: 'listTopics', input: {} },
  );
  assert.deepEqual(
    [error.status, error.code, error.message, error.requestId, error.details],
    [400, 'SYS_DLQ_X', 'no', 'req_1', details],
  );
});

test('an error with an in_doubt detail is in doubt', async () => {
  const details = [{ field: 'broker', reason: 'in_doubt', message: 'm' }];
  const error = await errorOf(
    (_request, response) =>
      response.writeHead(503, json).end(JSON.stringify({ error: { message: 'm', details } })),
    { id: 'startSaga', input: {} },
  );
  assert.equal(error.isInDoubt, true);
});

test('an answer of another server is an error', async () => {
  const page = await errorOf(
    (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('hi'),
    { id: 'listTopics', input: {} },
  );
  assert.match(page.message, /is not a Redrive server .*: check --url or REDRIVE_URL/);
  const gateway = await errorOf((_request, response) => response.writeHead(502).end('bad gateway'), {
    id: 'listTopics',
    input: {},
  });
  assert.match(gateway.message, /HTTP 502, and the answer is not from Redrive/);
});

test('an action without an answer is in doubt, a read is not', async () => {
  const hangUp: RequestListener = (request) => request.socket.destroy();
  const action = await errorOf(hangUp, { id: 'startSaga', input: {} });
  assert.match(action.message, /may or may not have been done/);
  assert.equal(action.isInDoubt, true);
  const question = await errorOf(hangUp, { id: 'listTopics', input: {} });
  assert.equal(question.isInDoubt, false);
});

test('an action whose answer breaks off is in doubt', async () => {
  const error = await errorOf(
    (_request, response) => {
      response.writeHead(200, { ...json, 'content-length': 100 });
      response.write('{', () => response.socket?.destroy());
    },
    { id: 'startSaga', input: {} },
  );
  assert.equal(error.isInDoubt, true);
});

test('a call times out', async () => {
  const error = await errorOf(() => {}, { id: 'listTopics', input: {}, timeoutMs: 20 });
  assert.match(error.message, /did not answer \(timed out after 0.02 s\)/);
});

test('a call ends with its signal', async () => {
  const stopping = new AbortController();
  const client = await clientOf(() => stopping.abort(new Error('no longer needed')));
  const call = client.call({ id: 'listTopics', input: {}, signal: stopping.signal });
  await assert.rejects(call, /^Error: no longer needed$/);
});
