import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { eventually } from '../../../tests/support/eventually.ts';
import { startGrpcInventory } from '../../../tests/support/grpc-inventory.ts';
import type { GrpcServiceSettings } from '../domain/service-settings.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';
import { createMethodCheck } from './method-check.ts';
import { createAskMethods, openServices } from '../run/services/open-services.ts';

/** An unused port. */
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

test('a service that is down is reported as unknown, and checked again when it is up', async (t) => {
  const port = await freePort();
  const services = openServices([service('inventory', port)]);
  t.after(() => services.close());
  const reported: (readonly string[])[] = [];
  const check = createMethodCheck({
    listWorkflows: async () => [
      { hash: 'a', workflow: workflowOf('one', [['inventory', 'Reserve']]) },
      { hash: 'b', workflow: workflowOf('two', [['inventory', 'Reserv']]) },
    ],
    askMethods: createAskMethods(services),
    onProblems: (problems) => void reported.push(problems),
    onError: (error) => assert.fail(String(error)),
  });
  await check.run();
  assert.equal(check.problems().length, 1, 'once, however many workflows call it');
  assert.match(check.problems()[0] ?? '', /^the methods of the service inventory are unknown: /);
  await check.run();
  assert.equal(reported.length, 1, 'the same problem is not reported twice');

  const inventory = await startGrpcInventory(port);
  t.after(() => inventory.stop());
  await eventually(async () => {
    await check.run();
    assert.equal(check.problems().length, 1);
    assert.match(
      check.problems()[0] ?? '',
      /^two: step step-0: the service inventory has no method .*\.Reserv; did you mean .*\.Reserve\?$/,
    );
  });

  inventory.stop();
  await eventually(async () => {
    await check.run();
    assert.match(check.problems()[0] ?? '', /are unknown/, 'the earlier methods are forgotten');
  });
});

test('asked locally, only .proto files are read', async (t) => {
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
  assert.equal(known.get('shop.inventory.v1.InventoryService.Watch')?.isStream, true);
  assert.deepEqual([await ask('away'), await ask('nobody')], ['any', 'any']);
  const gone = await ask('gone');
  assert.ok(typeof gone === 'object' && 'unknown' in gone && /no such file/.test(gone.unknown));
});

test('while the database is unavailable, the last result stays', async () => {
  let isAway = false;
  const errors: unknown[] = [];
  const check = createMethodCheck({
    listWorkflows: async () => {
      if (isAway) throw new Error('away');
      return [{ hash: 'a', workflow: workflowOf('one', [['inventory', 'Reserve']]) }];
    },
    askMethods: async () => new Map(),
    onProblems: () => {},
    onError: (error) => void errors.push(error),
  });
  await check.run();
  const [before] = check.problems();
  isAway = true;
  await check.run();
  assert.deepEqual([check.problems(), errors.length], [[before], 1]);
});
