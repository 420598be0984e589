import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { fingerprintOf } from '../../src/kernel/fingerprint/fingerprint.ts';
import { runCli } from '../../src/cli/run-cli.ts';
import { startJobsSystem, type JobsSystem } from '../support/jobs-system.ts';

/** Jobs from the command line, against the whole system. */
let at: JobsSystem;
before(async () => void (at = await startJobsSystem()));
after(() => at.drop());

type Ended = Readonly<{ code: number; out: string; err: string }>;

async function redrive(args: readonly string[], stdin = ''): Promise<Ended> {
  const said = { out: '', err: '' };
  const into = (stream: 'out' | 'err') => ({
    write: (data: string | Uint8Array): void => void (said[stream] += data.toString()),
  });
  const code = await runCli(['jobs', ...args, '--url', at.system.url, '--actor', 'ops'], {
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

test('a job is added from an option or standard input, and a duplicate key is reported', async () => {
  const first = await succeeds([
    'enqueue',
    '--queue',
    'mail',
    '--payload',
    '{"to":"a@example.com","id":117}',
    '--dedupe-key',
    'welcome',
    '--priority',
    '3',
  ]);
  const id = /^([\da-f-]{36}) pending/.exec(first)?.[1] ?? assert.fail(first);
  const again = await redrive(
    ['enqueue', '--queue', 'mail', '--payload-file', '-', '--dedupe-key', 'welcome'],
    '{}',
  );
  assert.match(again.out, new RegExp(id));
  assert.match(again.out + again.err, /already queued/);
  const shown = await succeeds(['show', id]);
  assert.match(shown, /queue +mail/);
  assert.match(shown, /dedupe key +welcome/);
  assert.match(shown, /a@example\.com/);
  await succeeds(['cancel', id, '--reason', 'by mistake']);
});

test('a missing or invalid payload is a usage error', async () => {
  assert.equal((await redrive(['enqueue', '--queue', 'mail'])).code, 2);
  const wrong = await redrive(['enqueue', '--queue', 'mail', '--payload', '{']);
  assert.deepEqual([wrong.code, /the payload is not JSON/.test(wrong.err)], [2, true]);
});

test('dead jobs are grouped by cause, requeued one by one or by filter, and discarded', async () => {
  const [one, two, other] = [
    await at.deadJob('timed out after 5 ms'),
    await at.deadJob('timed out after 5 ms'),
    await at.deadJob('no such article'),
  ];
  const dead = await succeeds(['dead', '--queue', 'mail']);
  assert.match(dead, /2 +mail .*timed out after/);
  assert.match(dead, /1 +mail .*no such article/);
  const cause = /2 +mail .*(v2:[0-9a-f]{32})/.exec(dead)?.[1] ?? '';
  const ofCause = await succeeds(['dead', '--fingerprint', cause, '--json']);
  assert.deepEqual(
    (JSON.parse(ofCause) as { jobs: { job_id: string }[] }).jobs.map(({ job_id: id }) => id).toSorted(),
    [one, two].toSorted(),
  );

  const preview = await redrive(['requeue', '--queue', 'mail', '--error', 'timed out', '--preview']);
  assert.match(preview.out + preview.err, /2 jobs would be requeued; nothing was changed/);
  assert.match(await succeeds(['requeue', one, '--reason', 'it is back']), new RegExp(`${one} pending`));
  assert.match(await succeeds(['requeue', '--fingerprint', cause]), /requeued 1 job/);
  assert.match(await succeeds(['discard', other]), /dead_letter/);

  const shown = await succeeds(['show', one]);
  assert.match(shown, /requeue +dead_letter -> pending +ops +it is back/);
  const conflict = await redrive(['discard', two]);
  assert.equal(conflict.code, 1);
  assert.match(conflict.err, /SYS_JOBS_CONFLICT/);
  assert.equal((await redrive(['requeue'])).code, 2);
});

test('a failure shows the error class and stack of its worker', async () => {
  const id = await at.job({ queue: 'stacks', max_retries: 1 });
  const { api } = at.system;
  const claimed = await api.post<{ jobs: { epoch: number }[] }>('/api/v1/jobs/queues/stacks/claim', {
    worker: 'w',
  });
  const told = {
    epoch: claimed.body.jobs[0]?.epoch,
    error: 'no stock',
    error_class: 'OutOfStock',
    stack: 'OutOfStock: no stock\n  at take (shop.py:12)\u001b[31m',
  };
  assert.equal((await api.post(`/api/v1/jobs/${id}/fail`, told)).status, 200);
  const { body } = await api.get<{ attempts: Record<string, unknown>[] }>(`/api/v1/jobs/${id}`);
  const { error, error_class: className, stack, fingerprint } = body.attempts[0] ?? {};
  assert.deepEqual([error, className, stack], [told.error, told.error_class, told.stack]);
  const cause = { errorClass: told.error_class, errorMessage: told.error, errorStack: told.stack };
  assert.equal(fingerprint, fingerprintOf(cause));
  const shown = await succeeds(['show', id]);
  assert.match(shown, /OutOfStock: no stock/);
  assert.match(shown, /stack of the last failure\n.*\n +at take \(shop\.py:12\)/);
  assert.ok(!shown.includes('\u001b'));
});

test("a list has pages, and --json prints the API's answer", async () => {
  for (let i = 0; i < 3; i += 1) await at.job({ queue: 'paged' });
  const { out, err } = await redrive(['list', '--queue', 'paged', '--page-size', '2']);
  assert.match(out + err, /2 of 3 jobs; next: --page 2/);
  const all = await succeeds(['list', '--queue', 'paged', '--all', '--page-size', '2', '--json']);
  const pages = all.trim().split('\n');
  assert.equal(pages.length, 2);
  assert.equal(pages.flatMap((page) => (JSON.parse(page) as { jobs: unknown[] }).jobs).length, 3);
  assert.equal((await redrive(['list', '--status', 'nothing'])).code, 2);
});

test('an unknown queue is an error with a suggestion, and is paused only with --create', async () => {
  for (const args of [
    ['pause', 'mial'],
    ['resume', 'mial'],
    ['requeue', '--queue', 'mial'],
  ]) {
    const { code, out, err } = await redrive(args);
    assert.equal(code, 1, err);
    assert.equal(out, '');
    assert.match(err, /queue not found: mial; did you mean mail\?/);
  }
  assert.doesNotMatch(await succeeds(['queues']), /mial/);
  assert.match(await succeeds(['pause', 'planned', '--create']), /planned paused by ops/);
  await succeeds(['resume', 'planned']);
});

test('a queue is paused and resumed', async () => {
  assert.match(
    await succeeds(['pause', 'mail', '--reason', 'the target is down']),
    /paused by ops: the target/,
  );
  assert.match(await succeeds(['queues']), /mail .*paused by ops/);
  assert.match(await succeeds(['resume', 'mail']), /mail running/);
});
