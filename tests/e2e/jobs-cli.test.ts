import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
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

test('a job is added from an option, a file or standard input, and a taken key is told', async () => {
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
  assert.match(again.out + again.err, /with this dedupe key was there/);
  const shown = await succeeds(['show', id]);
  assert.match(shown, /queue +mail/);
  assert.match(shown, /dedupe key +welcome/);
  assert.match(shown, /a@example\.com/);
  await succeeds(['cancel', id, '--reason', 'by mistake']);
});

test('a payload that is missing or no JSON is wrong usage', async () => {
  assert.equal((await redrive(['enqueue', '--queue', 'mail'])).code, 2);
  const wrong = await redrive(['enqueue', '--queue', 'mail', '--payload', '{']);
  assert.deepEqual([wrong.code, /the payload is not JSON/.test(wrong.err)], [2, true]);
});

test('dead letters are listed by what they died of, requeued by one or by many, discarded', async () => {
  const [one, two, other] = [
    await at.deadJob('timeout: no end within 5 ms'),
    await at.deadJob('timeout: no end within 5 ms'),
    await at.deadJob('no such article'),
  ];
  const dead = await succeeds(['dead', '--queue', 'mail']);
  assert.match(dead, /2 +mail .*timeout: no end/);
  assert.match(dead, /1 +mail .*no such article/);

  const preview = await redrive(['requeue', '--queue', 'mail', '--error', 'timeout:', '--preview']);
  assert.match(preview.out + preview.err, /2 jobs would be requeued; nothing was changed/);
  assert.match(await succeeds(['requeue', one, '--reason', 'it is back']), new RegExp(`${one} pending`));
  assert.match(await succeeds(['requeue', '--queue', 'mail', '--error', 'timeout:']), /1 jobs requeued/);
  assert.match(await succeeds(['discard', other]), /dead_letter/);

  const shown = await succeeds(['show', one]);
  assert.match(shown, /requeue +dead_letter -> pending +ops +it is back/);
  const conflict = await redrive(['discard', two]);
  assert.equal(conflict.code, 1);
  assert.match(conflict.err, /SYS_JOBS_CONFLICT/);
  assert.equal((await redrive(['requeue'])).code, 2);
});

test('a list has pages, and as JSON what the API said', async () => {
  for (let i = 0; i < 3; i += 1) await at.job({ queue: 'paged' });
  const { out, err } = await redrive(['list', '--queue', 'paged', '--page-size', '2']);
  assert.match(out + err, /2 of 3 jobs; next: --page 2/);
  const all = await succeeds(['list', '--queue', 'paged', '--all', '--page-size', '2', '--json']);
  const pages = all.trim().split('\n');
  assert.equal(pages.length, 2);
  assert.equal(pages.flatMap((page) => (JSON.parse(page) as { jobs: unknown[] }).jobs).length, 3);
  assert.equal((await redrive(['list', '--status', 'nothing'])).code, 2);
});

test('a queue is paused and resumed, and says so', async () => {
  assert.match(
    await succeeds(['pause', 'mail', '--reason', 'the target is down']),
    /paused by ops: the target/,
  );
  assert.match(await succeeds(['queues']), /mail .*paused by ops/);
  assert.match(await succeeds(['resume', 'mail']), /mail runs/);
});
