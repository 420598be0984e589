import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, before, beforeEach, describe, test } from 'node:test';
import { runCli } from '../../src/cli/run-cli.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { edit, rawOf, versionsOf } from '../support/edits.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { showMessage, storeRecords } from '../support/stored-message.ts';

/** The commands that correct a message and show what was corrected. */

describe('redrive dlq edit', () => {
  let system: TestSystem;
  let folder: string;
  let id: string;
  before(async () => {
    system = await startTestSystem();
    folder = mkdtempSync(join(tmpdir(), 'redrive-test-'));
  });
  after(async () => {
    rmSync(folder, { recursive: true });
    await system.drop();
  });
  beforeEach(async () => {
    await system.db.query(sql`DELETE FROM dlq.dlq_messages`);
    await storeRecords(system.db, 'orders.v1', [{ key: 'k', value: '{"qty":1}' }]);
    const [row] = await system.db.query<{ id: string }>(sql`
      UPDATE dlq.dlq_messages
      SET headers = '[{"key":"a","value":"1"},{"key":"redrive-attempt","value":"7"}]' RETURNING id`);
    id = row?.id ?? '';
  });

  type Ran = Readonly<{ code: number; out: string; err: string }>;
  const run = async (
    words: readonly string[],
    { stdin = '', env = {} }: Readonly<{ stdin?: string; env?: Readonly<Record<string, string>> }> = {},
  ): Promise<Ran> => {
    const texts = { out: '', err: '' };
    const output = (name: 'out' | 'err') => ({
      write: (data: string | Uint8Array): void => void (texts[name] += data.toString()),
    });
    const input = Object.assign(new PassThrough(), { isTTY: 'EDITOR' in env });
    input.end(stdin);
    const code = await runCli(['dlq', ...words, '--url', system.url], {
      env: { PATH: process.env['PATH'] ?? '', TMPDIR: folder, ...env },
      stdin: input,
      stdout: output('out'),
      stderr: output('err'),
    });
    return { code, ...texts };
  };
  const tryEdit = (...words: readonly string[]): Promise<Ran> =>
    run(['edit', id, '--reason', 'wrong', ...words]);

  /** An editor as a user might have it: it takes a while, and its command has arguments. */
  function editor(script: string): Readonly<{ EDITOR: string }> {
    const file = join(folder, 'editor.sh');
    writeFileSync(file, `#!/bin/sh\n[ "$1" = --wait ] && shift\n${script}\n`, { mode: 0o755 });
    return { EDITOR: `${file} --wait` };
  }
  const drafts = (): readonly string[] =>
    readdirSync(folder).filter((name) => name.startsWith('redrive-edit-'));

  test('takes the value from a file or standard input, and the other parts from options', async () => {
    const file = join(folder, 'value.bin');
    writeFileSync(file, Buffer.from([0xff, 0]));
    const edited = await tryEdit('--value-file', file, '--null-key', '--target', 'orders.v2');
    assert.deepEqual([edited.code, edited.out], [0, `${id} version 1\n`], edited.err);
    const raw = await rawOf(system.api, id);
    assert.deepEqual([raw.value_base64, raw.key_text], ['/wA=', undefined]);
    assert.equal((await showMessage(system.api, id)).original_topic, 'orders.v2');

    const piped = await run(['edit', id, '--reason', 'wrong', '--value-file', '-'], { stdin: '{"qty":2}\n' });
    assert.equal(piped.code, 0, piped.err);
    assert.equal((await rawOf(system.api, id)).value_text, '{"qty":2}\n');
    assert.equal((await tryEdit('--null-value', '--key', 'x')).code, 0);
    const last = await rawOf(system.api, id);
    assert.deepEqual([last.value_base64, last.key_text], [null, 'x']);
  });

  test('sets and removes headers, and leaves those of Redrive to it', async () => {
    assert.equal((await tryEdit('--header', 'b=2=3', '--header', 'a=4')).code, 0);
    const headersOf = async () =>
      (await rawOf(system.api, id)).headers.map(({ key, value }) => `${key}: ${value}`);
    assert.deepEqual(await headersOf(), ['b: 2=3', 'a: 4']);
    assert.equal((await tryEdit('--remove-header', 'b')).code, 0);
    assert.deepEqual(await headersOf(), ['a: 4']);
    assert.match((await tryEdit('--header', 'b')).err, /give --header name=value/);
  });

  test('opens the editor on a terminal, and sends what was saved', async () => {
    const env = editor(`sed -i 's/1/2/' "$1"; echo >> "$1"`);
    const edited = await run(['edit', id, '--reason', 'wrong'], { env });
    assert.equal(edited.code, 0, edited.err);
    assert.equal(
      (await rawOf(system.api, id)).value_text,
      '{"qty":2}',
      'a line end that the editor adds is left out',
    );
    assert.deepEqual(drafts(), []);
  });

  test('keeps the text if the edit is refused', async () => {
    await system.db.query(sql`
      INSERT INTO dlq.message_history (message_id, event, actor, retry_count, attempt_no, lease_epoch)
      VALUES (${id}, 'publish_unknown', 'tester', 1, 1, 0)`);
    const env = editor(`sed -i 's/1/2/' "$1"`);
    const refused = await run(['edit', id, '--reason', 'wrong'], { env });
    assert.equal(refused.code, 1);
    assert.match(refused.err, /your text is in .*redrive-edit-[^]*may_send_twice/);
    assert.equal(drafts().length, 1);
    for (const draft of drafts()) rmSync(join(folder, draft), { recursive: true });
    const told = await run(['edit', id, '--reason', 'wrong', '--may-send-twice'], { env });
    assert.equal(told.code, 0, told.err);
  });

  test('does nothing if nothing was changed, or the editor fails', async () => {
    const same = await run(['edit', id, '--reason', 'wrong'], { env: editor('true') });
    assert.deepEqual([same.code, same.err], [1, 'nothing was changed\n']);
    const failed = await run(['edit', id, '--reason', 'wrong'], { env: editor('exit 3') });
    assert.equal(failed.code, 1);
    assert.match(failed.err, /the editor .* failed: it ended with exit code 3; set EDITOR/);
    assert.deepEqual(drafts(), []);
    assert.equal((await versionsOf(system.api, id)).length, 1);
  });

  test('off a terminal it needs to be told what to change', async () => {
    const refused = await tryEdit();
    assert.equal(refused.code, 2);
    assert.match(refused.err, /nothing to change: give --value-file/);
  });

  test('of a dead message says that it stays dead', async () => {
    await system.api.post(`/api/v1/dlq/messages/${id}/dead`);
    assert.match((await tryEdit('--key', 'x')).err, /stays DEAD: reopen it/);
  });

  test('versions and diff show what was edited', async () => {
    assert.match((await run(['diff', id])).err, /versions 0 and 0 are equal/);
    const headers = [
      { key: 'a', value: '2' },
      { key: 'b\u001b[2J', value: 'x' },
    ];
    await edit(system.api, id, { value: '{"qty":2}', key: 'x', headers, target_topic: 'orders.v2' });
    const shown = await run(['diff', id]);
    assert.deepEqual(
      [shown.code, shown.out.split('\n')],
      [
        0,
        [
          '--- version 0',
          '+++ version 1',
          '-target topic: orders.v1',
          '+target topic: orders.v2',
          '-key: k',
          '+key: x',
          '-header redrive-attempt: 7',
          '+header b\\u001b[2J: x',
          '-header a: 1',
          '+header a: 2',
          '@@ -1,3 +1,3 @@',
          ' {',
          '-  "qty": 1',
          '+  "qty": 2',
          ' }',
          '',
        ],
      ],
    );
    assert.match((await run(['versions', id])).out, /^ *0 .*ingest .*\n *1 .*anonymous|^ *1 .*ada/m);
    assert.match((await run(['show', id])).out, /version +1, edited/);
    assert.match((await run(['raw', id, '--value', '--at', '0'])).out, /^\{"qty":1\}$/);
  });
});
