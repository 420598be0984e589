import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { startGrpcInventory } from '../support/grpc-inventory.ts';
import { assertError } from '../support/api-client.ts';
import { startSagaSystem, workflowRoot } from '../support/saga-system.ts';

type Readiness = Readonly<{
  status: string;
  checks: Readonly<Record<string, Readonly<{ status: string; message?: string }>>>;
}>;

const yaml = (name: string, service: string, method: string): string =>
  `name: ${name}\nsteps: [{name: a, service: ${service}, method: shop.inventory.v1.InventoryService.${method}}]\n`;

test('a file that calls a method missing in .proto files is bad; one missing on a server, or unknown, is a warning', async (t) => {
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
    assert.match(message, /the methods of the service away are unknown: /);
    assert.doesNotMatch(message, /right/);
  });
});

/** A step with a mapping for its action and one for its undo. */
const mapped = (name: string, service: string, { input = {}, undo = {} } = {}): string =>
  JSON.stringify({
    name,
    steps: [
      {
        name: 'a',
        service,
        method: 'shop.inventory.v1.InventoryService.Reserve',
        compensate: 'shop.inventory.v1.InventoryService.Release',
        input,
        compensate_input: undo,
      },
    ],
  });

const right = {
  input: {
    sku: '${input.sku}',
    counts: { 'any key': 1 },
    some_tags: [{ name: 'x' }, '${input.tag}'],
    speed: 'FAST',
  },
  undo: { reservation_id: '${own.reservation_id}' },
};
const wrong: readonly (readonly [where: string, mapping: object, message: RegExp])[] = [
  ['steps.a.input.qtty', { input: { qtty: 1 } }, /ReserveRequest has no field qtty; did you mean qty\?/],
  ['steps.a.input.some_tags.1.nme', { input: { some_tags: [{}, { nme: 1 }] } }, /Tag has no field nme/],
  ['steps.a.input.someTags', { input: { someTags: [] } }, /has no field someTags; did you mean some_tags\?/],
  ['steps.a.compensate_input.id', { undo: { id: '${own.id}' } }, /ReleaseRequest has no field id/],
];

test('a mapping with a field that its message has not is refused where the message is known', async (t) => {
  const inventory = await startGrpcInventory();
  t.after(() => inventory.stop());
  const folder = await mkdtemp(join(tmpdir(), 'workflows-'));
  t.after(() => rm(folder, { recursive: true }));
  await writeFile(join(folder, 'right.yaml'), mapped('from-file', 'local', right));
  await writeFile(join(folder, 'wrong.yaml'), mapped('wrong', 'local', { input: { qtty: 1 } }));
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
  const { api } = at.system;
  const post = (text: string) =>
    api.post<{ warnings: readonly string[] }>(workflowRoot, { workflow_yaml: text });

  for (const service of ['local', 'telling']) {
    for (const [where, mapping, message] of wrong) {
      const answer = await post(mapped('posted', service, mapping));
      assertError(answer, 400, 'SYS_SAGA_VALIDATION_ERROR');
      const { error } = answer.body as unknown as {
        error: { details: readonly { field: string; message: string }[] };
      };
      assert.equal(error.details[0]?.field, where);
      assert.match(error.details[0]?.message ?? '', message);
    }
    const answer = await post(mapped('posted', service, right));
    assert.deepEqual([answer.status, answer.body.warnings], [201, []], answer.text);
  }
  // Nobody can tell now what its messages have.
  const unchecked = await post(mapped('unchecked', 'away', { input: { qtty: 1 } }));
  assert.equal(unchecked.status, 201);
  assert.match(unchecked.body.warnings.join(), /^the methods of the service away could not be checked: /);

  const listed = await api.get<{ workflows: readonly { name: string }[] }>(workflowRoot);
  assert.deepEqual(
    listed.body.workflows.map(({ name }) => name),
    ['from-file', 'posted', 'unchecked'],
  );
  const ready = await api.get<Readiness>('/readyz');
  assert.match(
    ready.body.checks['workflows']?.message ?? '',
    /wrong\.yaml: step a: input\.qtty: .*no field qtty/,
  );
});

test('a workflow whose services are not configured is registered with a warning for each of them', async (t) => {
  const at = await startSagaSystem();
  t.after(() => at.drop());
  const steps = ['shop', 'shpo', 'shpo', 'stock'].map((service, i) => ({
    name: `s${i}`,
    service,
    method: 'POST /x',
  }));
  const answer = await at.system.api.post<{ warnings: readonly string[] }>(workflowRoot, {
    workflow_yaml: JSON.stringify({ name: 'early', steps }),
  });
  assert.equal(answer.status, 201, answer.text);
  assert.deepEqual(answer.body.warnings, [
    'the service shpo is not configured here; did you mean shop?',
    'the service stock is not configured here',
  ]);
});
