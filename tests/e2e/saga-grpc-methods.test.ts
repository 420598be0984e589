import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startGrpcInventory } from '../support/grpc-inventory.ts';
import { startSagaSystem, workflowRoot } from '../support/saga-system.ts';

type Readiness = Readonly<{
  status: string;
  checks: Readonly<Record<string, Readonly<{ status: string; message?: string }>>>;
}>;

const yaml = (name: string, service: string, method: string): string =>
  `name: ${name}\nsteps: [{name: a, service: ${service}, method: shop.inventory.v1.InventoryService.${method}}]\n`;

test('a file that calls what .proto files have not is bad; what a server has not, or does not tell, is a warning', async (t) => {
  const inventory = await startGrpcInventory();
  t.after(() => inventory.stop());
  const folder = await mkdtemp(join(tmpdir(), 'workflows-'));
  t.after(() => rm(folder, { recursive: true }));
  const files = {
    'a.yaml': yaml('local-right', 'local', 'Reserve'),
    'b.yaml': yaml('local-wrong', 'local', 'Reserv'),
    'c.yaml': yaml('local-stream', 'local', 'Watch'),
    'd.yaml': yaml('told-right', 'telling', 'Reserve'),
    'e.yaml': yaml('told-wrong', 'telling', 'Relase'),
    'f.yaml': yaml('not-told', 'away', 'Reserve'),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const grpc = { type: 'grpc', host: '127.0.0.1' };
  const at = await startSagaSystem({
    env: { SAGA_WORKFLOW_DIR: folder },
    services: {
      local: { ...grpc, port: 1, proto: inventory.protoFolder },
      telling: { ...grpc, port: inventory.port, reflection: true },
      away: { ...grpc, port: 1, reflection: true },
    },
  });
  t.after(() => at.drop());

  const listed = await at.system.api.get<{ workflows: readonly { name: string }[] }>(workflowRoot);
  assert.deepEqual(
    listed.body.workflows.map(({ name }) => name),
    ['local-right', 'not-told', 'told-right', 'told-wrong'],
  );
  await eventually(async () => {
    const ready = await at.system.api.get<Readiness>('/readyz');
    assert.equal(ready.status, 200);
    const { status, message = '' } = ready.body.checks['workflows'] ?? assert.fail();
    assert.equal(status, 'degraded');
    assert.match(message, /b\.yaml: step a: method: the service local has no method .*Reserv; did you mean/);
    assert.match(message, /c\.yaml: step a: method: the method .*Watch .* is a stream/);
    assert.match(message, /told-wrong: step a: the service telling has no method .*Relase/);
    assert.match(message, /what away can be called for is not known: /);
    assert.doesNotMatch(message, /right/);
  });
});
