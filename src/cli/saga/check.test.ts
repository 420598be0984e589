import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { startGrpcInventory } from '../../../tests/support/grpc-inventory.ts';
import { runCli } from '../run-cli.ts';

const placeOrder = `
name: place-order
steps:
  - name: reserve
    service: inventory
    method: POST /reservations
    compensate: DELETE /reservations
    compensate_input: {id: "\${own.id}"}
  - {name: score, service: risk, method: POST /scores}
  - {name: dispatch, service: shipping, method: POST /parcels, pivot: true}
`;

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-saga-check-'));
});
after(() => rm(folder, { recursive: true }));

type Ended = Readonly<{ code: number; out: string; err: string }>;

async function check(
  args: readonly string[],
  { stdin = '', env = {} }: Readonly<{ stdin?: string | Buffer; env?: NodeJS.ProcessEnv }> = {},
): Promise<Ended> {
  const said = { out: '', err: '' };
  const into = (stream: 'out' | 'err') => ({
    write: (data: string | Uint8Array): void => void (said[stream] += data.toString()),
  });
  const code = await runCli(['saga', 'check', ...args], {
    env,
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: into('out'),
    stderr: into('err'),
  });
  return { code, ...said };
}

async function fileWith(name: string, text: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, text);
  return file;
}

test('every failure point is listed with its compensation in order', async () => {
  const { code, out, err } = await check([await fileWith('place-order.yaml', placeOrder)]);
  assert.equal(code, 0);
  const [title = '', , ...table] = out.trimEnd().split('\n');
  assert.match(title, /^place-order: 3 steps, sha256:[\da-f]{64}$/);
  assert.deepEqual(
    table.map((line) => line.split(/ {2,}/)),
    [
      ['STEP', 'WHEN IT', 'ENDS', 'AFTER'],
      ['(before the first)', 'is aborted', 'CANCELLED or FAILED', 'nothing to undo'],
      ['reserve', 'is refused', 'FAILED', 'nothing to undo'],
      ['reserve', 'is in doubt', 'FAILED', 'undo reserve (DELETE /reservations without id)'],
      ['reserve', 'is aborted', 'CANCELLED or FAILED', 'undo reserve (DELETE /reservations)'],
      ['score', 'is refused', 'FAILED', 'undo reserve (DELETE /reservations)'],
      [
        'score',
        'is in doubt',
        'needs attention',
        'it is in doubt after 3 attempts and has no compensate (`compensate: none` says that it needs none); if it was not done: undo reserve (DELETE /reservations)',
      ],
      ['score', 'is aborted', 'CANCELLED or FAILED', 'skip score, undo reserve (DELETE /reservations)'],
      ['dispatch', 'is refused', 'FAILED', 'skip score, undo reserve (DELETE /reservations)'],
      [
        'dispatch',
        'is in doubt',
        'needs attention',
        'the pivot is in doubt after 1d of attempts and cannot be undone; if it was not done: skip score, undo reserve (DELETE /reservations)',
      ],
    ],
  );
  assert.match(err, /Services were not checked: no --config/);
});

test('an undo whose path is unknown in doubt needs attention', async () => {
  const stdin = placeOrder.replace('DELETE /reservations', 'DELETE /reservations/${own.id}');
  const { out } = await check(['-'], { stdin });
  assert.match(out, /is in doubt +needs attention +undo reserve manually \(its undo has own\.id in its path/);
});

test('--json prints the failure points', async () => {
  const { code, out } = await check(['-', '--json'], { stdin: placeOrder });
  assert.equal(code, 0);
  const { valid, name, step_count, failure_points } = JSON.parse(out);
  assert.deepEqual([valid, name, step_count, failure_points.length], [true, 'place-order', 3, 9]);
  assert.deepEqual(failure_points[2], {
    step: 'reserve',
    failure: 'in_doubt',
    ends: ['FAILED'],
    undo: [{ step: 'reserve', does: 'call', method: 'DELETE /reservations', left_out: ['id'] }],
    person: null,
  });
});

test('errors are listed with their step and field, and the command fails', async () => {
  const stdin = 'name: x\nsteps: [{name: "a\\u001b[2J", service: s, methd: A.B}]';
  const { code, out, err } = await check(['-'], { stdin });
  assert.equal(code, 1);
  assert.match(out, /^STEP +FIELD +ERROR\n/);
  assert.match(out, /\na\\u001b\[2J +methd +unknown key; did you mean method\?\n/);
  assert.equal(err, '3 errors\n');
  const json = await check(['-', '--json'], { stdin });
  assert.equal(json.code, 1);
  assert.deepEqual(JSON.parse(json.out).flaws[0], {
    step: 'a\u001b[2J',
    field: 'methd',
    message: 'unknown key; did you mean method?',
  });
});

test('services are checked against the configuration', async () => {
  const url = 'base_url: "http://127.0.0.1:9300"';
  const config = await fileWith(
    'config.yaml',
    `services: {inventory: {type: http, ${url}}, risk: {type: http, ${url}, idempotent: false}}`,
  );
  for (const named of [
    { args: ['-', '--config', config], env: {} },
    { args: ['-'], env: { CONFIG_PATH: config } },
  ]) {
    const wrong = await check(named.args, { stdin: placeOrder, env: named.env });
    assert.deepEqual([wrong.code, wrong.err], [1, '1 error\n']);
    assert.match(wrong.out, /dispatch +service +there is no service shipping/);
    const stdin = placeOrder.replace('service: shipping', 'service: inventory');
    const right = await check(named.args, { stdin, env: named.env });
    assert.equal(right.code, 0);
    assert.match(right.out, /in doubt after one call, which is never repeated, and has no compensate/);
    assert.doesNotMatch(right.err, /Services were not checked/);
  }
  const missing = await check(['-', '--config', join(folder, 'gone.yaml')], { stdin: placeOrder });
  assert.equal(missing.code, 78);
});

test('methods are checked against the .proto files or server reflection', async (t) => {
  const inventory = await startGrpcInventory();
  t.after(() => inventory.stop());
  const place = `type: grpc, host: 127.0.0.1, port: ${inventory.port}`;
  const config = await fileWith(
    'grpc.yaml',
    `services:
  by-file: {${place.replace(String(inventory.port), '1')}, proto: ${inventory.protoFolder}}
  by-itself: {${place}, reflection: true}
  away: {type: grpc, host: 127.0.0.1, port: 1, reflection: true}`,
  );
  const workflow = (service: string, method: string): string => `
name: reserve
steps: [{name: reserve, service: ${service}, method: shop.inventory.v1.InventoryService.${method}}]`;
  const checked = (service: string, method: string): Promise<Ended> =>
    check(['-', '--config', config], { stdin: workflow(service, method) });

  for (const service of ['by-file', 'by-itself']) {
    const right = await checked(service, 'Reserve');
    assert.equal(right.code, 0, right.out);
    assert.doesNotMatch(right.err, /were not checked/);
    const wrong = await checked(service, 'Reserv');
    assert.deepEqual([wrong.code, wrong.err], [1, '1 error\n']);
    assert.match(
      wrong.out,
      /reserve +method +the service by-\w+ has no method .*Reserv; did you mean .*Reserve\?/,
    );
    assert.match((await checked(service, 'Watch')).out, /reserve +method +.*Watch .* is a stream/);
    const mapped = await checked(service, 'Reserve, input: {qtty: 1}');
    assert.equal(mapped.code, 1);
    assert.match(mapped.out, /reserve +input\.qtty +the message .* has no field qtty; did you mean qty\?/);
  }
  const unknown = await checked('away', 'Reserv');
  assert.equal(unknown.code, 0, 'an unreachable server is not an error');
  assert.match(unknown.err, /Methods of away were not checked: /);
  const json = await check(['-', '--config', config, '--json'], { stdin: workflow('away', 'Reserve') });
  assert.deepEqual(
    JSON.parse(json.out).unchecked.map(({ service }: { service: string }) => service),
    ['away'],
  );
});

test('a file that cannot be read or is not UTF-8 is a usage error', async () => {
  const gone = await check([join(folder, 'gone.yaml')]);
  assert.deepEqual([gone.code, gone.out], [2, '']);
  assert.match(gone.err, /cannot read .*gone\.yaml/);
  const bytes = await check(['-'], { stdin: Buffer.from([0xff, 0xfe]) });
  assert.deepEqual([bytes.code, bytes.err], [2, 'redrive: standard input is not UTF-8\n']);
});
