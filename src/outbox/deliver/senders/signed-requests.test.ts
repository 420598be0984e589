import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { httpSettings, outgoingOrder } from '../../../../tests/support/destinations.ts';
import type { HttpSettings } from '../../domain/destination-settings.ts';
import { createHttpSender } from './http-sender.ts';
import { signatureOf } from './signature.ts';

type Received = Readonly<{ headers: IncomingHttpHeaders; body: Buffer }>;

async function receive(t: TestContext, answer: (path: string) => readonly [status: number, body: string]) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      received.push({ headers: request.headers, body: Buffer.concat(chunks) });
      const [status, body] = answer(request.url ?? '');
      response.writeHead(status).end(body);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, received };
}

async function send(t: TestContext, settings: HttpSettings, request: string) {
  const sender = createHttpSender(settings);
  t.after(() => sender.close());
  const [outcome] = sender.send([outgoingOrder({ request })], new AbortController().signal);
  return outcome ?? assert.fail();
}

test('the signature covers the received bytes and uses the current secret', async (t) => {
  const { origin, received } = await receive(t, () => [200, 'ok']);
  let secret = 'the first secret';
  const settings = httpSettings({
    url: `${origin}/hook`,
    response: 'any',
    sign: { secret: () => secret },
  });
  const request = '{"text": "Grüße, 世界 \\u0000 😀", "n": 1.0}';
  await send(t, settings, request);
  secret = 'the second secret';
  await send(t, settings, request);
  assert.deepEqual(received.map(isSignedWith('the first secret')), [true, false]);
  assert.deepEqual(received.map(isSignedWith('the second secret')), [false, true]);
});

const isSignedWith =
  (secret: string) =>
  ({ headers, body }: Received): boolean => {
    const [, t = '', v1 = ''] =
      /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers['x-redrive-signature'])) ?? [];
    assert.ok(Math.abs(Number(t) - Date.now() / 1000) < 60, 'it says when it was made');
    return createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex') === v1;
  };

test('requests are not signed by default', async (t) => {
  const { origin, received } = await receive(t, () => [200, '']);
  await send(t, httpSettings({ url: `${origin}/orders` }), '{}');
  assert.equal(received[0]?.headers['x-redrive-signature'], undefined);
});

test('the signature matches its documentation', () => {
  // echo -n '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret
  assert.equal(
    signatureOf('{"a":1}', 'secret', new Date(1_700_000_000_999)),
    't=1700000000,v1=49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686',
  );
});

test('a secret URL is in no stored text', async (t) => {
  const { origin } = await receive(t, (path) => [404, `no service at ${path}`]);
  const url = `${origin}/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX`;
  const outcome = await send(t, httpSettings({ url, isUrlSecret: true }), '{}');
  assert.ok('detail' in outcome);
  assert.match(outcome.detail ?? '', /^HTTP 404: no service at /);
  assert.doesNotMatch(outcome.detail ?? '', /XXXX|T00000000|B00000000/);
});
