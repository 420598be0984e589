import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { eventually } from '../../../tests/support/eventually.ts';
import { startGrpcInventory } from '../../../tests/support/grpc-inventory.ts';
import type { GrpcServiceSettings } from '../domain/service-settings.ts';
import type { Workflow } from '../domain/workflow.ts';
import { createCalledMethods } from './called-methods.ts';
import { createAskMethods, openServices } from './open-services.ts';

/** A port on which nobody listens. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

const service = (name: string, port: number, proto: string | null = null): GrpcServiceSettings => ({
  name,
  type: 'grpc',
  host: '127.0.0.1',
  port,
  proto,
  maxInFlight: 1,
  isIdempotent: true,
  headers: {},
  tls: undefined,
});

const workflowOf = (
  name: string,
  calls: readonly (readonly [service: string, method: string])[],
): Workflow => ({
  name,
  deadlineMs: null,
  steps: calls.map(([called, method], index) => ({
    name: `step-${index}`,
    service: called,
    method: `shop.inventory.v1.InventoryService.${method}`,
    undo: { kind: 'absent' },
    isPivot: false,
    timeoutMs: 1000,
    retry: { maxAttempts: 1, backoff: 'fixed', initialIntervalMs: 1 },
    input: null,
    undoInput: null,
  })),
});

test('a service that is away is told as not known, and again when it is there', async (t) => {
  const port = await freePort();
  const services = openServices([service('inventory', port)]);
  t.after(() => services.close());
  const told: (readonly string[])[] = [];
  const called = createCalledMethods({
    workflows: {
      list: async () => [
        { hash: 'a', workflow: workflowOf('one', [['inventory', 'Reserve']]) },
        { hash: 'b', workflow: workflowOf('two', [['inventory', 'Reserv']]) },
      ],
    },
    askMethods: createAskMethods(services),
    onTroubles: (troubles) => void told.push(troubles),
    onError: (error) => assert.fail(String(error)),
  });
  await called.look();
  assert.equal(called.troubles().length, 1, 'once, however many workflows call it');
  assert.match(called.troubles()[0] ?? '', /^what inventory can be called for is not known: /);
  await called.look();
  assert.equal(told.length, 1, 'the same trouble is not told twice');

  const inventory = await startGrpcInventory(port);
  t.after(() => inventory.stop());
  await eventually(async () => {
    await called.look();
    assert.equal(called.troubles().length, 1);
    assert.match(
      called.troubles()[0] ?? '',
      /^two: step step-0: the service inventory has no method .*\.Reserv; did you mean .*\.Reserve\?$/,
    );
  });

  inventory.stop();
  await eventually(async () => {
    await called.look();
    assert.match(called.troubles()[0] ?? '', /is not known/, 'what it said before is no longer told');
  });
});

test('of those that are asked locally only .proto files are looked at', async (t) => {
  const { pathname: protos } = new URL('../../../tests/support/protos/', import.meta.url);
  const services = openServices([
    service('file', 1, protos),
    service('away', 1),
    service('gone', 1, '/no/such'),
  ]);
  t.after(() => services.close());
  const ask = createAskMethods(services, 'local');
  const known = await ask('file');
  assert.ok(known instanceof Map);
  assert.equal(known.get('shop.inventory.v1.InventoryService.Watch'), 'stream');
  assert.deepEqual([await ask('away'), await ask('nobody')], ['any', 'any']);
  const gone = await ask('gone');
  assert.ok(typeof gone === 'object' && 'unknown' in gone && /no such file/.test(gone.unknown));
});

test('a database that is away leaves what was known', async () => {
  let isAway = false;
  const errors: unknown[] = [];
  const called = createCalledMethods({
    workflows: {
      list: async () => {
        if (isAway) throw new Error('away');
        return [{ hash: 'a', workflow: workflowOf('one', [['inventory', 'Reserve']]) }];
      },
    },
    askMethods: async () => new Map(),
    onTroubles: () => {},
    onError: (error) => void errors.push(error),
  });
  await called.look();
  const [before] = called.troubles();
  isAway = true;
  await called.look();
  assert.deepEqual([called.troubles(), errors.length], [[before], 1]);
});
