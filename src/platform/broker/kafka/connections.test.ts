import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { test, type TestContext } from 'node:test';
import { createConnections, type Connections, type Endpoint, type Link } from './connections.ts';
import { deadlineIn } from './deadline.ts';

const senders = 16;
const options = { connectTimeout: 1000, requestTimeout: 1000 } as const;

/** The answer to "which APIs do you have": none, in the bytes of its version 3. */
function noApis(request: Buffer): Buffer {
  const correlationId = request.subarray(8, 12);
  const noError = [0, 0];
  const emptyArray = 1;
  const noThrottle = [0, 0, 0, 0];
  const noTags = 0;
  const body = Buffer.from([...correlationId, ...noError, emptyArray, ...noThrottle, noTags]);
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length);
  return Buffer.concat([length, body]);
}

const answer = (socket: Socket): void =>
  void socket.on('data', (request: Buffer) => socket.write(noApis(request)));
const hangUp = (socket: Socket): void => void socket.destroy();

type Fixture = Readonly<{
  endpoint: Endpoint;
  connections: Connections;
  /** Every connection that was ever made, in order. */
  accepted: readonly Socket[];
}>;

/** A broker that knows only the first question of a connection, and treats each connection as `greet` says. */
async function listen(
  context: TestContext,
  greet: (socket: Socket, nth: number) => void = answer,
): Promise<Fixture> {
  const accepted: Socket[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => {});
    greet(socket, accepted.push(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connections = createConnections('redrive-test', options);
  context.after(() => {
    connections.close();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { endpoint: { host: '127.0.0.1', port }, connections, accepted };
}

const askAtOnce = ({ connections, endpoint }: Fixture): Promise<readonly PromiseSettledResult<Link>[]> =>
  Promise.allSettled(
    Array.from({ length: senders }, () =>
      connections.ask(endpoint, deadlineIn(5000), 'nothing', async (link) => link),
    ),
  );

const statuses = (results: readonly PromiseSettledResult<Link>[]): ReadonlySet<string> =>
  new Set(results.map(({ status }) => status));

test('concurrent requests share one new connection', async (context) => {
  const fixture = await listen(context);
  assert.deepEqual(statuses(await askAtOnce(fixture)), new Set(['fulfilled']));
  assert.equal(fixture.accepted.length, 1);
  assert.deepEqual(statuses(await askAtOnce(fixture)), new Set(['fulfilled']));
  assert.equal(fixture.accepted.length, 1);
});

test('concurrent requests after a lost connection share the next one', async (context) => {
  const fixture = await listen(context);
  const { connections, endpoint, accepted } = fixture;
  await connections.ask(endpoint, deadlineIn(5000), 'the end', async ({ connection }) => {
    const closed = once(connection, 'close');
    accepted[0]?.destroy();
    await closed;
  });
  assert.deepEqual(statuses(await askAtOnce(fixture)), new Set(['fulfilled']));
  assert.equal(accepted.length, 2);
});

test('all requests waiting for a connection fail with it, and later ones share another', async (context) => {
  const fixture = await listen(context, (socket, nth) => (nth === 1 ? hangUp : answer)(socket));
  assert.deepEqual(statuses(await askAtOnce(fixture)), new Set(['rejected']));
  assert.equal(fixture.accepted.length, 1);
  assert.deepEqual(statuses(await askAtOnce(fixture)), new Set(['fulfilled']));
  assert.equal(fixture.accepted.length, 2);
});

test('a connection that cannot be opened fails with its cause, each time', async () => {
  const connections = createConnections('redrive-test', { ...options, connectTimeout: 10 });
  const nowhere = { host: '127.0.0.1', port: 65_536 };
  for (const attempt of ['first', 'second'])
    await assert.rejects(
      connections.ask(nowhere, deadlineIn(5000), attempt, async () => {}),
      { code: 'ERR_SOCKET_BAD_PORT' },
    );
  connections.close();
});
