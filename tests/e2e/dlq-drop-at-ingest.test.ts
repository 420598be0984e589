import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createLogger } from '../../src/platform/telemetry/logger.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { edit, rawOf, tryEdit } from '../support/edits.ts';
import { createMasterKeyFile, newMasterKey, tablesWith } from '../support/encryption.ts';
import { eventually } from '../support/eventually.ts';
import { deadLetterTo, type LocalRecord } from '../support/local-dead-letters.ts';
import { planRedrive } from '../support/redrives.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

/** What a rule with `drop_at_ingest` protects is never stored, and what is left is never published. */

const root = '/api/v1/dlq/messages';
const secret = 'Hunter4711Secret';
const amount = Number('12345678901234567890.10');
const mail = 'somebody.private@example.com';

type Shown = Readonly<{
  id: string;
  status: string;
  key: string | null;
  payload: unknown;
  error_message: string;
  fingerprint: string;
  removed_parts?: readonly string[];
  encrypted?: boolean;
}>;

const rules = [
  {
    topics: ['fields.*', 'sealed.*'],
    fields: ['**.password'],
    headers: ['authorization'],
    drop_at_ingest: true,
  },
  {
    topics: ['dropped.*'],
    fields: ['**.password'],
    headers: ['authorization'],
    action: 'drop',
    drop_at_ingest: true,
  },
  { topics: ['keyed.*'], key: true, drop_at_ingest: true },
  { topics: ['texts.*'], patterns: ['email'], drop_at_ingest: true },
  { topics: ['shown.*'], fields: ['**.password'] },
];
const topics = ['fields', 'sealed', 'dropped', 'keyed', 'texts', 'shown', 'plain'];

let system: TestSystem;
let folder: string;
let store: (topic: string, record: LocalRecord) => Promise<string>;
const lines: string[] = [];
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-drop-'));
  const file = join(folder, 'config.yaml');
  const keys = createMasterKeyFile(newMasterKey('first'));
  const logger = createLogger({
    service: 'test',
    version: '0',
    environment: 'test',
    level: 'debug',
    stream: { write: (line: string) => void lines.push(line) },
  });
  const protect = { rules, encrypt: { topics: ['sealed.*'], key_file: keys.path } };
  await writeFile(file, JSON.stringify({ protect }));
  system = await startTestSystem({ kafka: 'local', env: { CONFIG_PATH: file }, logger });
  store = await deadLetterTo(system, topics);
});
after(async () => {
  await system.drop();
  await rm(folder, { recursive: true });
});

const shown = async (id: string): Promise<Shown> => (await system.api.get<Shown>(`${root}/${id}`)).body;

const withPassword = (more: Partial<LocalRecord> = {}): LocalRecord => ({
  key: 'order-7',
  value: `{"password": "${secret}", "amount": 12345678901234567890.10}`,
  headers: [
    ['authorization', `Basic ${secret}`],
    ['tenant', 'acme'],
  ],
  ...more,
});

const isNowhere = async (...texts: readonly string[]): Promise<void> => {
  await eventually(async () =>
    assert.deepEqual(await system.db.query(sql`SELECT 1 FROM dlq.index_queue`), []),
  );
  assert.deepEqual(await tablesWith(system.db, texts), []);
  assert.ok(!lines.some((line) => texts.some((text) => line.includes(text))), 'it is in the log');
};

describe('a message of which fields and headers are removed', () => {
  let id: string;
  before(async () => void (id = await store('fields', withPassword())));

  test('is stored without them, and says so', async () => {
    const message = await shown(id);
    assert.deepEqual(message.removed_parts, ['value', 'headers']);
    const raw = await rawOf(system.api, id);
    assert.equal(raw.value_text, '{"password": "[masked]", "amount": 12345678901234567890.10}');
    assert.deepEqual(
      raw.headers.filter(({ key }) => key !== 'error'),
      [
        { key: 'authorization', value: '[masked]' },
        { key: 'tenant', value: 'acme' },
      ].map((header) => ({ ...raw.headers.find(({ key }) => key === header.key), ...header })),
    );
    await isNowhere(secret);
  });

  test('is not retried: alone, with its topic, or by a redrive', async () => {
    const one = await system.api.post(`${root}/${id}/retry`);
    assertError(one, 409, 'SYS_DLQ_REMOVED_AT_INGEST');
    assert.match(one.text, /content of its value and headers was removed before it was stored/);
    const all = await system.api.post<{ retried: number; exclusions: readonly object[] }>(
      '/api/v1/dlq/fields.v1/retry-all',
    );
    assert.deepEqual(
      [all.body.retried, all.body.exclusions],
      [0, [{ reason: 'removed_at_ingest', topic: 'fields.v1', count: 1 }]],
    );
    const plan = await planRedrive(system.api, { filter: { topic: 'fields.v1' } });
    assert.deepEqual(plan.excluded, [{ reason: 'removed_at_ingest', count: 1, sample_ids: [id] }]);
  });

  test('is counted and verified as any other', async () => {
    const { body } = await system.api.get<{ balanced: boolean }>('/api/v1/dlq/accounting');
    assert.equal(body.balanced, true);
    const verified = await system.api.get<{ stored: { messages: number }; different: { count: number } }>(
      '/api/v1/dlq/sources/fields.dlq.v1/0/verify',
    );
    assert.equal(verified.status, 200, verified.text);
    assert.deepEqual([verified.body.stored.messages, verified.body.different.count], [1, 0]);
  });

  test('is retried when an edit has given all of it again, without masks', async () => {
    const masked = await tryEdit(system.api, id, { value: '{"password": "[masked]"}' });
    assertError(masked, 422, 'SYS_DLQ_WRONG_EDIT');
    await edit(system.api, id, { value: '{"password": "new"}' });
    assert.deepEqual((await shown(id)).removed_parts, ['headers']);
    assertError(await system.api.post(`${root}/${id}/retry`), 409, 'SYS_DLQ_REMOVED_AT_INGEST');
    await edit(system.api, id, { headers: [{ key: 'authorization', value: 'Basic new' }] });
    assert.equal((await shown(id)).removed_parts, undefined);
    const retried = await system.api.post(`${root}/${id}/retry`);
    assert.equal(retried.status, 200, retried.text);
    // The record as it arrived is still not compared.
    const { body } = await system.api.get<{ different: { count: number } }>(
      '/api/v1/dlq/sources/fields.dlq.v1/0/verify',
    );
    assert.equal(body.different.count, 0);
  });

  test('is recognised when its new version comes back, though that is removed too', async () => {
    const sent = 'Returned4711Secret';
    const one = await store('fields', withPassword({ headers: [] }));
    await edit(system.api, one, { value: `{"password": "${sent}"}` });
    assert.equal((await system.api.post(`${root}/${one}/retry`)).status, 200);
    const [claimed] = await system.db.query<{ attempt: number }>(
      sql`SELECT attempt_no AS attempt FROM dlq.dlq_messages WHERE id = ${one}`,
    );
    const headers = [
      ['error', `failed on password=${sent}`],
      ['redrive-message-id', one],
      ['redrive-attempt', String(claimed?.attempt)],
      ['redrive-version', '1'],
      ['original_topic', 'fields.v1'],
    ] as const;
    const { broker } = system;
    assert.ok(broker !== null);
    await broker.publish(
      [
        {
          topic: 'fields.dlq.v1',
          key: Buffer.from('order-7'),
          value: Buffer.from(`{"password": "${sent}"}`),
          headers: headers.map(([name, text]) => ({ key: Buffer.from(name), value: Buffer.from(text) })),
          timestamp: 1n,
          compression: 'none',
        },
      ],
      { timeoutMs: 5000 },
    );
    await eventually(async () => assert.equal((await shown(one)).status, 'PENDING'));
    assert.equal((await shown(one)).error_message, 'failed on password=[masked]');
    // The operator's own value stays, and is masked where it is shown.
    assert.equal((await shown(one)).removed_parts, undefined);
  });
});

test('what is left out leaves no trace, and the message is marked all the same', async () => {
  const id = await store('dropped', withPassword());
  const { payload, removed_parts: removed } = await shown(id);
  assert.deepEqual([payload, removed], [{ amount }, ['value', 'headers']]);
  assertError(await system.api.post(`${root}/${id}/retry`), 409, 'SYS_DLQ_REMOVED_AT_INGEST');
});

test('a value that is no JSON is removed as a whole', async () => {
  const id = await store('fields', withPassword({ value: `password ${secret}`, headers: [] }));
  assert.equal((await rawOf(system.api, id)).value_text, '[masked]');
  assert.deepEqual((await shown(id)).removed_parts, ['value']);
  await isNowhere(secret);
});

test('a large value is stored without what is removed', async () => {
  const filler = 'x'.repeat(900 << 10);
  const id = await store(
    'fields',
    withPassword({ value: `{"filler": "${filler}", "password": "${secret}"}` }),
  );
  assert.deepEqual((await shown(id)).removed_parts, ['value', 'headers']);
  const [row] = await system.db.query<{ bytes: number; found: number }>(sql`
    SELECT length(raw_value) AS bytes, position(convert_to(${secret}, 'UTF8') IN raw_value) AS found
    FROM dlq.dlq_messages WHERE id = ${id}`);
  assert.ok((row?.bytes ?? 0) > 900 << 10);
  assert.equal(row?.found, 0);
  await system.db.query(sql`DELETE FROM dlq.dlq_messages WHERE id = ${id}`);
});

test('a key is removed', async () => {
  const id = await store('keyed', { key: secret, value: '{}' });
  const { key, removed_parts: removed } = await shown(id);
  assert.deepEqual([key, removed], ['[masked]', ['key']]);
  assertError(await system.api.post(`${root}/${id}/retry`), 409, 'SYS_DLQ_REMOVED_AT_INGEST');
  await isNowhere(secret);
});

test('what only the error quotes is removed from it, and the message can be retried', async () => {
  const headers = [['error', `no such user: ${mail}`]] as const;
  const id = await store('texts', { key: null, value: '{"user": 7}', headers });
  const message = await shown(id);
  assert.deepEqual(message.removed_parts, ['error']);
  assert.ok(!message.error_message.includes(mail));
  await isNowhere(mail);
  const retried = await system.api.post(`${root}/${id}/retry`);
  assert.equal(retried.status, 200, retried.text);
});

test('messages are grouped as if nothing had been removed', async () => {
  const headers = [['error', `rejected: {"password":"${secret}"} is too short`]] as const;
  const [kept, removed] = [
    await store('plain', { key: null, value: '{}', headers }),
    await store('fields', { key: null, value: '{}', headers }),
  ];
  assert.equal((await shown(removed)).fingerprint, (await shown(kept)).fingerprint);
  await system.db.query(sql`DELETE FROM dlq.dlq_messages WHERE id = ${kept}`);
});

test('of an encrypted message nothing is left either', async () => {
  const id = await store('sealed', withPassword());
  const message = await shown(id);
  assert.deepEqual([message.encrypted, message.removed_parts], [true, ['value', 'headers']]);
  assert.deepEqual(message.payload, { password: '[masked]', amount });
  assertError(await system.api.post(`${root}/${id}/retry`), 409, 'SYS_DLQ_REMOVED_AT_INGEST');
  const { body } = await system.api.get<{ different: { count: number } }>(
    '/api/v1/dlq/sources/sealed.dlq.v1/0/verify',
  );
  assert.equal(body.different.count, 0);
});

test('a rule without drop_at_ingest only masks, and the message is retried byte for byte', async () => {
  const id = await store('shown', withPassword({ headers: [] }));
  assert.equal((await shown(id)).removed_parts, undefined);
  assert.equal((await system.api.post(`${root}/${id}/retry`)).status, 200);
});

test('it stays removed in the archive and when it is reopened', async () => {
  const id = await store('sealed', withPassword());
  await system.api.post(`${root}/${id}/dead`, { reason: 'not needed' });
  await system.db.query(sql`SELECT set_config('dlq.deriving_fingerprints', 'on', false)`);
  await system.db.transaction(async (tx) => {
    await tx.query(sql`SELECT set_config('dlq.deriving_fingerprints', 'on', true)`);
    await tx.query(sql`UPDATE dlq.dlq_messages SET updated_at = now() - interval '99 days' WHERE id = ${id}`);
  });
  await system.db.call(sql`CALL dlq.archive_old_dlq_messages(30)`);
  const message = async (): Promise<Shown & { archived?: boolean }> => shown(id);
  assert.equal((await message()).archived, true);
  assert.deepEqual((await message()).removed_parts, ['value', 'headers']);
  const reopened = await system.api.post(`${root}/${id}/reopen`, { reason: 'needed after all' });
  assert.equal(reopened.status, 200, reopened.text);
  const { archived, encrypted, payload, removed_parts: removed } = await message();
  assert.deepEqual([archived, encrypted, removed], [false, true, ['value', 'headers']]);
  assert.deepEqual(payload, { password: '[masked]', amount });
  assertError(await system.api.post(`${root}/${id}/retry`), 409, 'SYS_DLQ_REMOVED_AT_INGEST');
});
