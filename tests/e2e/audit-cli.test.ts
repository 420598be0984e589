import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, before, test } from 'node:test';
import { exitCodes } from '../../src/cli/exit-code.ts';
import { runCli } from '../../src/cli/run-cli.ts';
import { Sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

/** `redrive audit`, on a server that seals its log. */
let system: TestSystem;
before(async () => {
  system = await startTestSystem();
  for (const queue of ['mail', 'push', 'sms'])
    await system.api.post(
      `/api/v1/jobs/queues/${queue}/pause`,
      { reason: `the ${queue} partner is away`, create: true },
      { 'x-actor': 'ada' },
    );
});
after(() => system.drop());

type Ran = Readonly<{ code: number; out: string; err: string }>;

async function audit(words: readonly string[], more: Readonly<{ url?: string }> = {}): Promise<Ran> {
  let [out, err] = ['', ''];
  const terminal = {
    env: { REDRIVE_URL: more.url ?? system.url },
    stdin: new PassThrough(),
    stdout: { write: (data: string | Uint8Array): void => void (out += data.toString()) },
    stderr: { write: (data: string | Uint8Array): void => void (err += data.toString()) },
  };
  const code = await runCli(['audit', ...words], terminal);
  return { code, out, err };
}

type Exported = Readonly<{ type: string; seq?: number; block?: number; hash?: string; resource?: string }>;
const linesOf = (text: string): readonly Exported[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Exported);

/** When everything is sealed. */
const sealed = (): Promise<Ran> =>
  eventually(
    async () => {
      const ran = await audit(['verify']);
      assert.match(ran.out, /not sealed yet +0 events/);
      return ran;
    },
    { withinMs: 30_000 },
  );

const asOwner = (statement: string): Promise<void> =>
  system.db.transaction(async (tx) => {
    await tx.query(new Sql([`SET LOCAL session_replication_role = 'replica'`], []));
    await tx.query(new Sql([statement], []));
  });

test('list shows the newest events first, with every filter of the API', async () => {
  const { code, out } = await audit(['list', '--action', 'jobs:queues:pause']);
  assert.equal(code, 0);
  const [title = '', ...rows] = out.trimEnd().split('\n');
  assert.match(title, /^AT +OUTCOME +ACTOR +NAME +ACTION +RESOURCE/);
  assert.deepEqual(
    rows.map((row) => /jobs\/queues\/(\w+)/.exec(row)?.[1]),
    ['sms', 'push', 'mail'],
  );
  assert.match(rows[0] ?? '', /success +ada +local +jobs:queues:pause .*the sms partner is away/);

  const [newest] = (
    JSON.parse((await audit(['list', '--json'])).out) as { events: readonly { at: string }[] }
  ).events;
  const filters: readonly (readonly [words: readonly string[], found: RegExp])[] = [
    [['--by', 'ada', '--resource', 'jobs/queues/push'], /"total_count":1,/],
    [['--by', 'eve'], /"total_count":0,/],
    [['--outcome', 'denied'], /"total_count":0,/],
    [['--outcome', 'success', '--resource', 'jobs/queues/mail'], /"total_count":1,/],
    [['--operation', '0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31'], /"total_count":0,/],
    [['--since', newest?.at ?? '', '--action', 'jobs:queues:pause'], /"total_count":[01],/],
    [['--until', '2020-01-01T00:00:00Z'], /"total_count":0,/],
  ];
  for (const [words, found] of filters)
    assert.match((await audit(['list', '--json', ...words])).out, found, words.join(' '));
  assert.equal((await audit(['list', '--since', 'yesterday'])).code, exitCodes.usage);
});

test('export prints all sealed events with their blocks, and continues after a block', async () => {
  await sealed();
  const { code, out, err } = await audit(['export']);
  assert.equal(code, 0);
  const lines = linesOf(out);
  const paused = lines.filter(({ resource }) => resource?.startsWith('jobs/queues/') === true);
  assert.equal(paused.length, 3);
  const last = lines.at(-1);
  assert.equal(last?.type, 'seal');
  const events = lines.filter(({ type }) => type === 'event').length;
  assert.equal(err, `exported ${events} events; next: --after-block ${last?.block}\n`);
  const rest = await audit(['export', '--after-block', String(last?.block)]);
  assert.deepEqual([rest.code, linesOf(rest.out).length], [0, 0]);
});

test('verify compares the chain with anchors, which a removed end needs', async () => {
  await sealed();
  const seals = linesOf((await audit(['export'])).out).filter(({ type }) => type === 'seal');
  const folder = mkdtempSync(join(tmpdir(), 'redrive-anchors-'));
  const file = join(folder, 'anchors.ndjson');
  const verify = (lines: readonly unknown[]): Promise<Ran> => {
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
    return audit(['verify', '--anchors', file]);
  };
  try {
    const whole = await verify(seals);
    assert.equal(whole.code, 0);
    assert.match(whole.out, new RegExp(`result +the chain is whole\n.*, ${seals.length} anchors`, 's'));
    // More than fit into one call.
    const many = await verify(Array.from({ length: 2001 }, () => seals[0]));
    assert.match(many.out, /, 2001 anchors/);
    const block = (seals.at(-1)?.block ?? 0) + 1;
    const missing = await verify([...seals, { block, hash: 'ab'.repeat(32) }]);
    assert.equal(missing.code, exitCodes.failed);
    assert.match(missing.out, new RegExp(`result +block ${block}: block_missing`));
    for (const lines of [[], [{ block: 1 }], [{ block: 1, hash: 'short' }], ['text']])
      assert.equal((await verify(lines)).code, exitCodes.usage);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

for (const [what, breaks, mends, problem] of [
  [
    'changed',
    `UPDATE audit.events SET reason = 'nothing' WHERE resource = 'jobs/queues/push'`,
    `UPDATE audit.events SET reason = 'the push partner is away' WHERE resource = 'jobs/queues/push'`,
    'events_changed',
  ],
  [
    'inserted',
    `INSERT INTO audit.events (seq, at, actor_type, actor_id, actor_name, action, outcome, resource)
     SELECT seq, at + interval '1 microsecond', 'system', 'x', 'x', 'jobs:jobs:cancel', 'success', 'x'
     FROM audit.events WHERE resource = 'jobs/queues/push'`,
    `DELETE FROM audit.events WHERE resource = 'x'`,
    'events_added',
  ],
  ['removed', `DELETE FROM audit.events WHERE resource = 'jobs/queues/push'`, 'SELECT', 'events_missing'],
] as const)
  test(`verify names the block of a row that was ${what}, and fails`, async () => {
    await sealed();
    const exported = linesOf((await audit(['export'])).out);
    const at = exported.findIndex(({ resource }) => resource === 'jobs/queues/push');
    const block = exported.slice(at).find(({ type }) => type === 'seal')?.block;
    await asOwner(breaks);
    const { code, out } = await audit(['verify']);
    assert.equal(code, exitCodes.failed);
    assert.match(out, new RegExp(`result +block ${block}: ${problem}`));
    const json = await audit(['verify', '--json']);
    assert.equal(json.code, exitCodes.failed);
    assert.equal((JSON.parse(json.out) as { first_bad_block: number }).first_bad_block, block);
    await asOwner(mends);
  });

/** A server that answers an export with what a test wants. */
async function answering(
  write: (respond: NodeJS.WritableStream & { destroy(): void }) => void,
): Promise<Ran> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    write(response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    return await audit(['export'], { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const event = `{"type":"event","seq":1}\n`;

test('an export that breaks off fails, has whole lines only, and says where to continue', async () => {
  const { code, out, err } = await answering((response) => {
    response.write(`${event}{"type":"seal","block":7}\n{"type":"event","se`);
    setTimeout(() => response.destroy(), 50);
  });
  assert.equal(code, exitCodes.unavailable);
  assert.equal(linesOf(out).at(-1)?.block, 7);
  assert.match(err, /continue with --after-block 7\n/);
  assert.match(err, /did not finish its answer/);
});

test('an export of a server that is not Redrive fails, and takes no memory for an endless line', async () => {
  const html = await answering((response) => response.end('<html>\n</html>\n'));
  assert.equal(html.code, exitCodes.unavailable);
  assert.match(html.err, /the answer is not an audit log/);
  const endless = await answering((response) => {
    const more = (): void => {
      while (response.write('x'.repeat(65_536)));
      response.once('drain', more);
    };
    more();
  });
  assert.match(endless.err, /the answer is not an audit log/);
});

test('an export of 200 000 events takes the memory of a few pages', async () => {
  const count = 200_000;
  const line = `{"type":"event","seq":1,"reason":"${'r'.repeat(600)}"}\n`;
  let bytes = 0;
  let peak = 0;
  const base = process.memoryUsage().rss;
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    let sent = 0;
    const more = (): void => {
      while (sent < count && response.write(line.repeat(100))) sent += 100;
      if (sent >= count) response.end('{"type":"seal","block":1}\n');
      else {
        sent += 100;
        response.once('drain', more);
      }
    };
    more();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const terminal = {
      env: { REDRIVE_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
      stdin: new PassThrough(),
      stdout: {
        write(data: string | Uint8Array): void {
          bytes += data.length;
          peak = Math.max(peak, process.memoryUsage.rss() - base);
        },
      },
      stderr: { write() {} },
    };
    assert.equal(await runCli(['audit', 'export'], terminal), 0);
    assert.ok(bytes >= count * line.length, `${bytes} bytes`);
    assert.ok(peak < 80 * 1024 * 1024, `${Math.round(peak / 1024 / 1024)} MiB more for ${bytes} bytes`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
