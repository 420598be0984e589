import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import { ApiError, createRedriveClient, JsonText, type ClientOptions, type RedriveClient } from './index.ts';

const servers = new Set<ReturnType<typeof createServer>>();
after(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
});

type Seen = Readonly<{ method: string; url: string; headers: IncomingMessage['headers']; body: string }>;
type Options = Omit<ClientOptions, 'url'> & Readonly<{ folder?: string }>;

/** A client of a server whose requests get these answers in turn; the last one repeats. */
async function clientOf(answers: readonly RequestListener[], { folder = '', ...options }: Options = {}) {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body });
      answers[Math.min(seen.length, answers.length) - 1]?.(request, response);
    });
  });
  servers.add(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}${folder}`;
  return { client: createRedriveClient({ url, backoffMs: 1, ...options }), seen };
}

const json =
  (status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): RequestListener =>
  (_request, response: ServerResponse) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
const ok = json(200, {});
const busy = (seconds: string): RequestListener =>
  json(503, { error: { code: 'SYS_X', message: 'busy' } }, { 'retry-after': seconds });
const hangUp: RequestListener = (request) => request.socket.destroy();
const never: RequestListener = () => {};

async function errorOf(calling: Promise<unknown>): Promise<ApiError> {
  const error: unknown = await calling.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ApiError, String(error));
  return error;
}

const order = { idempotency_key: 'order-0001', request: {} };

describe('a request', () => {
  test('has each field where its operation has it', async () => {
    const { client, seen } = await clientOf([ok], {
      folder: '/redrive/',
      headers: { authorization: 'Bearer x' },
    });
    await client.listJobs({ queue: 'a b&c', page_size: 5, status: undefined });
    await client.cancelJob({ id: '7/8', reason: 'why' });
    await client.forgetSource({ topic: 'orders', partition: 3, reason: 'gone' });
    await client.resumeQueue({ queue: 'mail' });
    assert.deepEqual(
      seen.map(({ method, url, body }) => [method, url, body]),
      [
        ['GET', '/redrive/api/v1/jobs?queue=a+b%26c&page_size=5', ''],
        ['POST', '/redrive/api/v1/jobs/7%2F8/cancel', '{"reason":"why"}'],
        ['DELETE', '/redrive/api/v1/dlq/sources/orders/3?reason=gone', ''],
        ['POST', '/redrive/api/v1/jobs/queues/mail/resume', ''],
      ],
    );
    assert.equal(seen[0]?.headers.authorization, 'Bearer x');
    assert.equal(seen[3]?.headers['content-type'], undefined);
  });

  test('keeps the digits of a JSON text', async () => {
    const { client, seen } = await clientOf([ok]);
    await client.enqueueJob({ queue: 'mail', payload: new JsonText('{"n":12345678901234567890.10}') });
    assert.equal(seen[0]?.body, '{"queue":"mail","payload":{"n":12345678901234567890.10}}');
    assert.throws(() => new JsonText('1}, "x": {'), SyntaxError);
  });

  test('names the actor in UTF-8, without control characters', async () => {
    const { client, seen } = await clientOf([ok], { actor: '太郎\r\nx: y' });
    await client.listQueues();
    assert.equal(Buffer.from(String(seen[0]?.headers['x-actor']), 'latin1').toString(), '太郎 x: y');
  });

  test('carries the key of an order, or the key that the caller gives', async () => {
    const { client, seen } = await clientOf([ok]);
    await client.addOrder(order);
    await client.startSaga({ workflow_name: 'buy' }, { idempotencyKey: 'k' });
    await client.startSaga({ workflow_name: 'buy' });
    assert.deepEqual(
      seen.map(({ headers }) => headers['idempotency-key']),
      ['order-0001', 'k', undefined],
    );
  });

  test('carries the entity tag with which the item was read', async () => {
    const { client, seen } = await clientOf([json(200, { id: '7' }, { etag: '"0-42"' }), ok, ok]);
    const { etag } = await client.call('getMessage', { id: '7' });
    await client.editMessage({ id: '7', value: null, reason: 'why' }, { ifMatch: etag });
    await client.getMessage({ id: '7' }, { ifMatch: etag });
    assert.deepEqual(
      seen.map(({ headers }) => headers['if-match']),
      [undefined, '"0-42"', undefined],
    );
  });

  test('with a path segment that leads elsewhere is refused', async () => {
    const { client, seen } = await clientOf([ok]);
    for (const id of ['', '.', '..']) await assert.rejects(client.getJob({ id }), TypeError);
    assert.equal(seen.length, 0);
  });
});

describe('an answer', () => {
  test('is the value, and with call also its text, status and request id', async () => {
    const replayed = json(200, { saga_id: '7' }, { 'x-request-id': 'r', 'idempotent-replayed': 'true' });
    const { client } = await clientOf([replayed]);
    const answer = await client.call('startSaga', {});
    assert.deepEqual(
      { ...answer },
      {
        status: 200,
        text: '{"saga_id":"7"}',
        value: { saga_id: '7' },
        requestId: 'r',
        isReplayed: true,
        etag: undefined,
      },
    );
    assert.deepEqual(await client.startSaga({ workflow_name: 'buy' }), { saga_id: '7' });
  });

  test('that refuses is an error with code, message, request id and details', async () => {
    const details = [{ field: 'id', reason: 'format', message: 'must be a UUID' }];
    const body = { error: { code: 'SYS_JOBS_X', message: 'no', request_id: 'req_1', details } };
    const { client } = await clientOf([json(400, body)]);
    const { status, code, message, requestId, isInDoubt, ...rest } = await errorOf(
      client.getJob({ id: '7' }),
    );
    assert.deepEqual(
      [status, code, message, requestId, isInDoubt],
      [400, 'SYS_JOBS_X', 'no', 'req_1', false],
    );
    assert.deepEqual(rest.details, details);
  });

  test('of another server is an error, and a redirect is not followed', async () => {
    const page: RequestListener = (_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<p>');
    const moved: RequestListener = (_, response) => response.writeHead(302, { location: '/login' }).end();
    const { client, seen } = await clientOf([page, moved], { hint: ': check the URL' });
    assert.match((await errorOf(client.listQueues())).message, /is not a Redrive server .*: check the URL$/);
    assert.match(
      (await errorOf(client.listQueues())).message,
      /^HTTP 302, and the answer is not from Redrive/,
    );
    assert.equal(seen.length, 2);
  });

  test('that is larger than the limit is not read to its end', async () => {
    const { client } = await clientOf([(_, response) => response.writeHead(200).end('x'.repeat(2000))], {
      maxAnswerBytes: 1000,
    });
    assert.match((await errorOf(client.listQueues())).message, /larger than 1000 bytes/);
  });

  test('of metrics is text', async () => {
    const { client } = await clientOf([(_, response) => response.end('up 1\n')]);
    assert.equal(await client.getMetrics(), 'up 1\n');
  });
});

describe('a repetition', () => {
  const read = (client: RedriveClient) => client.listQueues();
  const keyed = (client: RedriveClient) => client.addOrder(order);
  const plain = (client: RedriveClient) => client.enqueueJob({ queue: 'mail', payload: {} });

  test('follows 429, 503 and a lost connection for reads and for requests with a key', async () => {
    for (const call of [read, keyed]) {
      const { client, seen } = await clientOf(
        [busy('0'), hangUp, json(429, {}, { 'retry-after': '0' }), ok],
        { retries: 3 },
      );
      await call(client);
      assert.equal(seen.length, 4);
    }
  });

  test('never follows for another request, whose fate is then in doubt', async () => {
    for (const call of [plain, (client: RedriveClient) => client.deleteMessage({ id: '7' })]) {
      const { client, seen } = await clientOf([hangUp, busy('0'), ok]);
      assert.equal((await errorOf(call(client))).isInDoubt, true);
      assert.equal((await errorOf(call(client))).status, 503);
      assert.equal(seen.length, 2);
    }
  });

  test('does not follow other errors', async () => {
    const { client, seen } = await clientOf([json(500, {}), json(409, {}), ok]);
    await errorOf(read(client));
    await errorOf(read(client));
    assert.equal(seen.length, 2);
  });

  test('ends after so many retries', async () => {
    const { client, seen } = await clientOf([busy('0')], { retries: 2 });
    assert.equal((await errorOf(read(client))).code, 'SYS_X');
    assert.equal(seen.length, 3);
  });

  test('that would come too late is left out, and the error says when', { timeout: 5000 }, async () => {
    const { client, seen } = await clientOf([busy('3600')]);
    assert.equal((await errorOf(read(client))).retryAfterMs, 3_600_000);
    assert.equal(seen.length, 1);
  });
});

describe('a call', () => {
  test('times out, and is then in doubt unless it reads', async () => {
    const { client } = await clientOf([never], { timeoutMs: 20, retries: 5 });
    const read = await errorOf(client.listQueues());
    assert.match(read.message, /timed out after/);
    assert.deepEqual([read.status, read.isInDoubt], [undefined, false]);
    assert.equal((await errorOf(client.enqueueJob({ queue: 'mail', payload: 1 }))).isInDoubt, true);
  });

  test('ends with its signal, also between two attempts', async () => {
    const reason = new Error('stopping');
    const waiting = new AbortController();
    const { client } = await clientOf([
      never,
      (request, response) => {
        busy('10')(request, response);
        response.once('close', () => setImmediate(() => pausing.abort(reason)));
      },
    ]);
    const pausing = new AbortController();
    const first = client.listQueues({}, { signal: waiting.signal });
    setImmediate(() => waiting.abort(reason));
    await assert.rejects(first, reason);
    await assert.rejects(client.listQueues({}, { signal: pausing.signal }), reason);
    await assert.rejects(client.listQueues({}, { signal: AbortSignal.abort(reason) }), reason);
  });

  test('is checked by the compiler', async () => {
    const { client } = await clientOf([ok]);
    // @ts-expect-error: a job has a queue
    await client.enqueueJob({ payload: {} });
    // @ts-expect-error: there is no such status
    await client.listJobs({ status: 'gone' });
    const job = await client.getJob({ id: 7 });
    // @ts-expect-error: there is no such field
    assert.equal(job.nothing, undefined);
  });
});
