import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { runCli } from '../../src/cli/run-cli.ts';
import { eventually } from '../support/eventually.ts';
import { endedRedrive, showRedrive } from '../support/redrives.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { storeRecords } from '../support/stored-message.ts';

/** The commands that plan a redrive, follow it and end it. */

const topic = 'orders.v1';

describe('redrive dlq redrive', () => {
  let system: TestSystem;
  before(async () => {
    system = await startTestSystem({ kafka: 'local' });
    await system.broker?.createTopic(topic, 1);
  });
  after(() => system.drop());

  type Ran = Readonly<{ code: number; out: string; err: string }>;
  const run = async (words: readonly string[], interrupted?: AbortSignal): Promise<Ran> => {
    const texts = { out: '', err: '' };
    const output = (name: 'out' | 'err') => ({
      write: (data: string | Uint8Array): void => void (texts[name] += data.toString()),
    });
    const code = await runCli(['dlq', 'redrive', ...words, '--url', system.url], {
      env: {},
      stdin: new PassThrough(),
      stdout: output('out'),
      stderr: output('err'),
      interrupted: interrupted ?? new AbortController().signal,
    });
    return { code, ...texts };
  };
  const plan = async (...options: readonly string[]): Promise<string> => {
    await storeRecords(
      system.db,
      topic,
      Array.from({ length: 30 }, (_, i) => ({ key: `k${i}`, value: `${i}` })),
    );
    const planned = await run(['plan', topic, ...options, '--reason', 'the consumer was fixed']);
    assert.equal(planned.code, 0, planned.err);
    assert.match(planned.out, /state +planned/);
    assert.match(planned.out, /selected +\d\d/);
    return /^id +(\S+)/m.exec(planned.out)?.[1] ?? assert.fail(planned.out);
  };

  test('plans, starts, follows and shows the receipt', async () => {
    const id = await plan('--rate', '1000');
    assert.match((await run(['receipt', id])).err, /no receipt yet/);
    assert.match((await run(['start', id])).out, new RegExp(`${id} running`));
    const watched = await run(['watch', id]);
    assert.equal(watched.code, 0, watched.err);
    assert.match(watched.out, /state +finished/);
    const { receipt } = await showRedrive(system.api, id);
    const shown = await run(['receipt', id]);
    assert.match(shown.out, new RegExp(`published +30[^]*sha256 +${receipt?.sha256}`));
    assert.match((await run(['list'])).out, new RegExp(`${id} +retry +finished +30`));

    const items = await run(['items', id.slice(0, 13), '--outcome', 'published', '--page-size', '2']);
    assert.match(items.out, /POSITION +MESSAGE +OUTCOME[^]* 1 +[-0-9a-f]{36} +published .*orders\.v1\/0@\d+/);
    assert.match(items.err, /2 of 30 items; next: --page 2/);
    assert.match((await run(['items', id, '--outcome', 'failed'])).err, /no items/);
  });

  test('Ctrl-C in watch leaves the redrive running and says how to follow and pause it', async () => {
    const id = await plan('--rate', '1');
    await run(['start', id]);
    const interrupt = new AbortController();
    const watching = run(['watch', id], interrupt.signal);
    await eventually(async () =>
      assert.ok(((await showRedrive(system.api, id)).counts['published'] ?? 0) > 0),
    );
    interrupt.abort();
    const watched = await watching;
    assert.equal(watched.code, 0, watched.err);
    assert.match(watched.err, new RegExp(`redrive ${id} goes on[^]*pause ${id}`));
    assert.equal((await showRedrive(system.api, id)).state, 'running');

    assert.match((await run(['pause', id])).out, /paused/);
    assert.match((await run(['pace', id.slice(0, 13), 'none'])).out, /paused, no limit/);
    assert.match((await run(['pace', id, '0.5', '--reason', 'slower'])).out, /0\.5 per second/);
    for (const wrong of ['fast', '0', '1e9', '-1']) assert.equal((await run(['pace', id, wrong])).code, 2);
    assert.match((await run(['resume', id])).out, /running/);
    assert.match((await run(['cancel', id])).out, /cancelled/);
    await endedRedrive(system.api, id, 'cancelled');
    assert.equal((await run(['watch', id])).code, 1);
    assert.match((await run(['start', id])).err, /redrive is cancelled: start needs planned/);
  });

  test('plans a canary, and shows its stage', async () => {
    const id = await plan('--canary', '2,5', '--watch-seconds', '60', '--stop-percent', '5');
    assert.equal((await run(['canary', id])).code, 2);
    const changed = await run(['canary', id, '--stop-percent', '7', '--reason', 'as agreed']);
    assert.match(changed.out, /canary +2, 5, then all; watched for 60 s; stops above 7 %/);
    assert.match((await run(['list', '--state', 'planned'])).out, new RegExp(id));
    assert.doesNotMatch((await run(['list', '--state', 'running'])).out, new RegExp(id));
    await run(['start', id]);
    await eventually(async () =>
      assert.match((await run(['show', id])).out, /stage +1 of 3 \(up to 2\), watched until 20/),
    );
    assert.match(
      (await run(['show', id])).out,
      /canary +2, 5, then all; watched for 60 s; stops above 7 %[^]*published +2/,
    );
    assert.match((await run(['canary', id, '--none'])).err, /only before the start/);
    await run(['cancel', id]);
    const without = await plan('--canary', '2');
    assert.doesNotMatch((await run(['canary', without, '--none'])).out, /canary/);
    await run(['cancel', without]);
    const wrong = await run(['plan', topic, '--canary', '1;5', '--reason', 'x']);
    assert.equal(wrong.code, 2);
    assert.match(wrong.err, /Must be whole numbers separated by commas, such as 1,5,25\./);
  });
});
