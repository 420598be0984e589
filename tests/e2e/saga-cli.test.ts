import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, beforeEach, test } from 'node:test';
import { runCli } from '../../src/cli/run-cli.ts';
import { startSagaSystem, step, stepWithoutUndo, type SagaSystem } from '../support/saga-system.ts';

/** Sagas from the command line, against the whole system. */
let at: SagaSystem;
before(async () => void (at = await startSagaSystem()));
after(() => at.drop());
beforeEach(() => at.shop.setScript(() => undefined));

type Ended = Readonly<{ code: number; out: string; err: string }>;

async function redrive(args: readonly string[], stdin = ''): Promise<Ended> {
  const said = { out: '', err: '' };
  const into = (stream: 'out' | 'err') => ({
    write: (data: string | Uint8Array): void => void (said[stream] += data.toString()),
  });
  const code = await runCli(['saga', ...args, '--url', at.system.url, '--actor', 'ops'], {
    stdout: into('out'),
    stderr: into('err'),
    stdin: Readable.from([stdin]),
    env: {},
  });
  return { code, ...said };
}

async function succeeds(args: readonly string[], stdin?: string): Promise<string> {
  const { code, out, err } = await redrive(args, stdin);
  assert.equal(code, 0, err);
  return out;
}

const refusal = { status: 422, body: { error: 'no' } } as const;

test('a workflow is registered, listed and shown; a bad one says what is wrong', async () => {
  const yaml = 'name: cli-order\nsteps: [{name: pay, service: shop, method: POST /pay}]';
  assert.match(await succeeds(['register', '-'], yaml), /^cli-order: 1 step, sha256:[\da-f]{64}\n$/);
  assert.match(await succeeds(['workflows']), /cli-order +pay +sha256:[\da-f]{12}\n/);
  assert.match(await succeeds(['workflows', 'cli-order']), /"method": "POST \/pay"/);
  const bad = await redrive(['register', '-'], yaml.replace('service: shop', 'service: shpo'));
  assert.equal(bad.code, 2);
  assert.match(bad.err, /there is no service shpo/);
});

test('a saga is started, once for a key, and shown with its attempts', async () => {
  const name = await at.register([step('reserve'), step('charge')]);
  const args = ['start', name, '--payload', '{"sku":"shoe"}', '--correlation-id', 'o-1', '--key', 'once'];
  const id = /^([\da-f-]{36}) STARTED/.exec(await succeeds(args))?.[1] ?? assert.fail();
  const again = await redrive(args);
  assert.match(again.out, new RegExp(`^${id} STARTED`));
  assert.match(again.err, /this key was used before/);
  await at.becomes(id, 'COMPLETED');
  const shown = await succeeds(['show', id]);
  assert.match(shown, /correlation id +o-1/);
  assert.match(shown, /reserve +1 +SUCCESS[^]*charge +1 +SUCCESS/);
  assert.match(await succeeds(['list', '--workflow', name, '--status', 'COMPLETED']), new RegExp(id));
  const page = JSON.parse(await succeeds(['list', '--workflow', name, '--json'])) as { sagas: unknown[] };
  assert.equal(page.sagas.length, 1);
  const late = await redrive(['cancel', id]);
  assert.equal(late.code, 1);
  assert.match(late.err, /SYS_SAGA_CONFLICT/);
});

test('a payload that is no JSON, and a step without a reason, are wrong usage', async () => {
  assert.equal((await redrive(['start', 'x', '--payload', '{'])).code, 2);
  assert.equal((await redrive(['retry', 'x', 'y'])).code, 2);
  assert.equal((await redrive(['list', '--status', 'nothing'])).code, 2);
  assert.equal((await redrive(['resolve', 'x', 'y', '--reason', 'z', '--output', '{'])).code, 2);
});

test('what waits for a person is found, and goes on as the person says', async () => {
  at.shop.setScript(({ what }) => (what === 'charge' || what === 'undo reserve' ? refusal : undefined));
  const undo = await at.startOf([step('reserve'), step('charge')]);
  await at.waitsForPerson(undo);
  assert.match(
    await succeeds(['list', '--needs-person']),
    new RegExp(`${undo} +COMPENSATING \\(needs a person\\)`),
  );
  assert.match(await succeeds(['show', undo]), /stuck at +undo reserve/);
  at.shop.setScript(() => undefined);
  await succeeds(['retry', undo, 'reserve', '--reason', 'it is back']);
  await at.becomes(undo, 'FAILED');
  assert.match(await succeeds(['show', undo]), /undo reserve +1 +FAILED +ops +.*it is back/);

  at.shop.setScript(({ what }) => (what === 'mail' ? refusal : undefined));
  const steps = [
    stepWithoutUndo('pay', { pivot: true }),
    stepWithoutUndo('mail'),
    stepWithoutUndo('file', { input: { of: '${steps.mail.id}' } }),
  ];
  const forward = await at.startOf(steps);
  await at.waitsForPerson(forward);
  await at.age(forward);
  const skipped = await redrive(['skip', forward, 'mail', '--reason', 'nobody reads it']);
  assert.match(skipped.err, /its answer is needed by file/);
  const output = ['--outcome', 'done', '--output', '{"id":"m-1"}'];
  await succeeds(['resolve', forward, 'mail', '--reason', 'sent by hand', ...output]);
  const { step_logs } = await at.becomes(forward, 'COMPLETED');
  assert.deepEqual(step_logs.at(-1)?.request_payload, { of: 'm-1' });
});

test('a saga is cancelled or compensated', async () => {
  at.shop.setScript(({ what }) =>
    what === 'charge' ? { status: 503, headers: { 'retry-after': '3600' } } : undefined,
  );
  for (const [what, status] of [
    ['cancel', 'CANCELLED'],
    ['compensate', 'FAILED'],
  ] as const) {
    const id = await at.startOf([step('reserve'), step('charge')]);
    await at.until(id, ({ current_step }) => current_step === 1);
    assert.match(await succeeds([what, id, '--reason', 'a mistake']), new RegExp(`^${id} RUNNING`));
    assert.match((await at.becomes(id, status)).saga.error_message ?? '', /by ops: a mistake$/);
  }
});
