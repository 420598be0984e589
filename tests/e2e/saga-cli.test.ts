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

async function redrive(args: readonly string[], stdin = '', isTTY = false): Promise<Ended> {
  const said = { out: '', err: '' };
  const into = (stream: 'out' | 'err') => ({
    write: (data: string | Uint8Array): void => void (said[stream] += data.toString()),
  });
  const code = await runCli(['saga', ...args, '--url', at.system.url, '--actor', 'ops'], {
    stdout: into('out'),
    stderr: into('err'),
    stdin: Object.assign(Readable.from([stdin]), { isTTY }),
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

test('a workflow is registered, listed and shown; an invalid one is explained', async () => {
  const yaml = 'name: cli-order\nsteps: [{name: pay, service: shop, method: POST /pay}]';
  assert.match(await succeeds(['register', '-'], yaml), /^cli-order: 1 step, sha256:[\da-f]{64}\n$/);
  assert.match(await succeeds(['workflows']), /cli-order +pay +sha256:[\da-f]{12} +0 +0\n/);
  const shown = await succeeds(['workflows', 'cli-order']);
  assert.match(shown, /sha256:[\da-f]{64} \(current\) [^\n]+ 0 +0\n[^]*"method": "POST \/pay"/);
  assert.match(await succeeds(['services']), /shop +http +yes +0 +closed/);
  const bad = await redrive(['register', '-'], yaml.replace('POST /pay', 'GET /pay'));
  assert.equal(bad.code, 2);
  assert.match(bad.err, /must begin with POST, PUT/);
  const unserved = await redrive(['register', '-'], yaml.replace('service: shop', 'service: shpo'));
  assert.equal(unserved.code, 0);
  assert.match(unserved.err, /warning: the service shpo is not configured here; did you mean shop\?/);
});

test('a saga is started once per key and shown with its attempts', async () => {
  const name = await at.register([step('reserve'), step('charge')]);
  const args = ['start', name, '--payload', '{"sku":"shoe"}', '--correlation-id', 'o-1', '--key', 'once'];
  const id = /^([\da-f-]{36}) STARTED/.exec(await succeeds(args))?.[1] ?? assert.fail();
  const again = await redrive(args);
  assert.match(again.out, new RegExp(`^${id} STARTED`));
  assert.match(again.err, /already started with this key/);
  await at.becomes(id, 'COMPLETED');
  const shown = await succeeds(['show', id]);
  assert.match(shown, /correlation id +o-1/);
  assert.match(shown, /reserve +done +shop POST \/reserve +POST \/undo-reserve/);
  assert.match(shown, /reserve +1 +SUCCESS[^]*charge +1 +SUCCESS/);
  assert.match(await succeeds(['list', '--workflow', name, '--status', 'COMPLETED']), new RegExp(id));
  const page = JSON.parse(await succeeds(['list', '--workflow', name, '--json'])) as { sagas: unknown[] };
  assert.equal(page.sagas.length, 1);
  const late = await redrive(['cancel', id]);
  assert.equal(late.code, 1);
  assert.match(late.err, /SYS_SAGA_CONFLICT/);
});

test('an invalid payload and a step action without a reason are usage errors', async () => {
  assert.equal((await redrive(['start', 'x', '--payload', '{'])).code, 2);
  assert.equal((await redrive(['retry', 'x', 'y'])).code, 2);
  assert.equal((await redrive(['list', '--status', 'nothing'])).code, 2);
  assert.equal((await redrive(['resolve', 'x', 'y', '--reason', 'z', '--output', '{'])).code, 2);
});

test('a saga that needs attention is listed and can be retried, skipped or resolved', async () => {
  at.shop.setScript(({ what }) => (what === 'charge' || what === 'undo reserve' ? refusal : undefined));
  const undo = await at.startOf([step('reserve'), step('charge')]);
  await at.waitsForPerson(undo);
  assert.match(
    await succeeds(['list', '--needs-attention']),
    new RegExp(`${undo} +COMPENSATING \\(needs attention\\)`),
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

test('stuck sagas are previewed, and retried after confirmation', async () => {
  at.shop.setScript(({ what }) => (what === 'undo reserve' || what === 'charge' ? refusal : undefined));
  const name = await at.register([step('reserve'), step('charge')]);
  const ids = await Promise.all([1, 2, 3].map(() => at.start(name)));
  for (const id of ids) await at.waitsForPerson(id);
  at.shop.setScript(() => undefined);
  const all = ['retry-all', '--workflow', name];
  const seen = await redrive([...all, '--action', 'COMPENSATE', '--preview']);
  assert.equal(seen.code, 0, seen.err);
  assert.match(seen.out, /STUCK AT/);
  assert.match(seen.out, /undo reserve/);
  assert.match(seen.err, /3 sagas match/);

  assert.equal((await redrive(all)).code, 2, 'a reason is missing');
  assert.equal((await redrive(['retry-all', '--reason', 'x'])).code, 2, 'a filter is missing');
  const reasoned = [...all, '--reason', 'it is back'];
  const unattended = await redrive(reasoned);
  assert.deepEqual([unattended.code, unattended.out], [2, '']);
  assert.match(unattended.err, /not interactive; pass --yes to confirm/);
  const limited = await redrive([...reasoned, '--limit', '2'], 'n\n', true);
  assert.match(limited.err, /Retry 2 of 3 sagas\? \[y\/N\]/);
  const refused = await redrive(reasoned, 'n\n', true);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /Retry 3 sagas\? \[y\/N\] .*nothing was retried/s);
  for (const id of ids) assert.equal((await at.told(id)).saga.needs_attention, true);

  const [one = ''] = ids;
  assert.match(await succeeds(['retry-all', one, '--reason', 'it is back']), /^retried 1 saga\n$/);
  assert.match((await redrive(reasoned, 'y\n', true)).out, /retried 2 sagas\n$/);
  for (const id of ids) await at.becomes(id, 'FAILED');
  assert.match(await succeeds([...reasoned, '--yes']), /^retried 0 sagas\n$/);
  const misspelt = await redrive(['retry-all', '--workflow', 'nosuch', '--reason', 'x', '--yes']);
  assert.notEqual(misspelt.code, 0);
  assert.match(misspelt.err, /workflow not found: workflow_name=nosuch/);
});
