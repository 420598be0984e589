import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { DeclaredRoute } from '../../src/platform/http/access/route-access.ts';
import type { ApiClient } from '../support/api-client.ts';
import { humanRoles, startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';
import type { ListView, MessageView } from '../support/stored-message.ts';

/**
 * A canary in everything that is protected. Every GET route is called as every role of people, from what the routes
 * declare: no answer may have it.
 */
let guarded: GuardedSystem;
let reads: readonly DeclaredRoute[];
let ids: Readonly<Record<string, string>>;

const canary = 'canary-7f3a';
const topic = 'payments.v1';
const value = JSON.stringify({ order_id: 7, password: 'hunter2', card: '4111 1111 1111 1111', note: canary });

before(async () => {
  guarded = await startGuardedSystem({
    more: {
      roles: ['api'],
      protect: {
        rules: [
          { fields: ['**.password'], headers: ['authorization'], patterns: ['pan', 'canary'] },
          { topics: ['keyed.*'], key: true, action: 'hash' },
        ],
        patterns: { canary: 'canary-[a-z0-9]+' },
        hash_key: 'a key for the hashes of tests',
      },
    },
  });
  ids = { message: await storeProtected('payments.v1'), keyed: await storeProtected('keyed.v1') };
  const admin = await guarded.as(['sys_admin']);
  const made = await admin.post('/api/v1/dlq/redrives', {
    filter: { topic, text: canary },
    reason: `look at ${canary}`,
  });
  assert.equal(made.status, 202, made.text);
  ids = { ...ids, redrive: (made.body as { id: string }).id };
  reads = (await guarded.system.routes()).filter(
    ({ method, path }) => method === 'GET' && path.startsWith('/api/v1/dlq') && !path.endsWith('/events'),
  );
});
after(() => guarded.drop());

async function storeProtected(original: string): Promise<string> {
  const headers = JSON.stringify([
    { key: 'authorization', value: 'hunter2' },
    { key: 'note', value: canary },
  ]);
  const [row] = await guarded.system.db.query<{ id: string }>(sql`
    INSERT INTO dlq.dlq_messages
      (original_topic, error_message, error_class, error_stack, source_topic, message_key, raw_value, payload, headers,
       fingerprint)
    VALUES (${original}, ${`failed on {"password":"hunter2"} with ${canary}`}, ${`Failed.${canary}`},
            ${`at ${canary} password=hunter2`}, ${`${original}.dlq`}, ${Buffer.from(`key ${canary}`)},
            ${Buffer.from(value)}, ${value}::jsonb, ${headers}::jsonb, 'v2:0123456789abcdef0123456789abcdef')
    RETURNING id`);
  assert.ok(row !== undefined);
  await guarded.system.db.query(sql`
    INSERT INTO dlq.message_history (message_id, event, actor, reason, retry_count, attempt_no, lease_epoch, detail)
    VALUES (${row.id}, 'publish_failed', 'somebody', ${`because of ${canary}`}, 1, 1, 0, ${`it said ${canary}`})`);
  return row.id;
}

function pathOf({ path }: DeclaredRoute): string {
  return path
    .replace('/redrives/:id', `/redrives/${ids['redrive']}`)
    .replace(':id', ids['message'] ?? '')
    .replace(':topic', topic)
    .replace(':version', '0')
    .replace(':fingerprint', 'v2:0123456789abcdef0123456789abcdef');
}

const hidden = /canary-7f3a|hunter2|4111 1111/;

for (const role of humanRoles)
  test(`no GET route shows a ${role} what is protected`, async () => {
    const api = await guarded.as([role]);
    let shown = 0;
    for (const route of reads) {
      for (const headers of [{}, { accept: 'application/x-ndjson' }]) {
        const { status, text } = await api.get(pathOf(route), headers);
        assert.ok(status < 500, `${route.path}: ${text}`);
        assert.doesNotMatch(text, hidden, `${route.path} ${status}`);
        if (text.includes('[masked')) shown += 1;
      }
    }
    assert.ok(shown >= 6, String(shown));
  });

const showProtected = async (api: ApiClient, id: string | undefined) =>
  (await api.get<MessageView & { masked?: true }>(`/api/v1/dlq/messages/${id}`)).body;

test('who may see payloads sees all but the protected parts, and who may not sees none', async () => {
  const seen = await showProtected(await guarded.as(['sys_operator']), ids['message']);
  const protectedParts = { password: '[masked]', card: '[masked]', note: '[masked]' };
  assert.deepEqual([seen.payload, seen.masked], [{ order_id: 7, ...protectedParts }, true]);
  assert.equal(seen.key, 'key [masked]');
  assert.equal(seen.error_message, 'failed on {"password":[masked]} with [masked]');
  const auditor = await guarded.as(['sys_auditor']);
  assert.equal((await showProtected(auditor, ids['message'])).payload, '[masked]');
  const { body } = await auditor.get<ListView>('/api/v1/dlq/messages');
  assert.deepEqual(
    body.messages.map((message) => (message as unknown as { payload_preview: string }).payload_preview),
    ['[masked]', '[masked]'],
  );
  assert.match((await showProtected(auditor, ids['keyed'])).key ?? '', /^\[masked:[a-p]{16}\]$/);
});

test('who may not see payloads can search for nothing that is covered', async () => {
  const auditor = await guarded.as(['sys_auditor']);
  for (const query of ['text=canary', 'not_text=canary', 'key=a', 'not_key=a'])
    for (const path of ['/api/v1/dlq/messages', '/api/v1/dlq/messages/facets']) {
      const { status, text } = await auditor.get(`${path}?${query}`);
      assert.equal(status, 403, `${path} ${query}: ${text}`);
      assert.match(text, /SYS_AUTH_PERMISSION_DENIED.*dlq:payloads:view/);
    }
  const operator = await guarded.as(['sys_operator']);
  assert.equal((await operator.get('/api/v1/dlq/messages?text=canary')).status, 200);
});

test('bytes are refused while parts of them are protected; a reveal with a reason returns them, and is on record', async () => {
  const operator = await guarded.as(['sys_operator']);
  for (const path of ['raw', 'versions/0']) {
    const { status, text } = await operator.get(`/api/v1/dlq/messages/${ids['message']}/${path}`);
    assert.equal(status, 403, text);
    assert.match(text, /SYS_DLQ_PROTECTED/);
  }
  const path = `/api/v1/dlq/messages/${ids['message']}/reveal`;
  assert.equal((await operator.post(path, {})).status, 400);
  assert.equal((await (await guarded.as(['sys_auditor'])).post(path, { reason: 'curious' })).status, 403);
  const revealed = await operator.post<{ value_text: string; key_text: string; error_stack: string }>(path, {
    reason: 'ticket 4711',
  });
  assert.equal(revealed.status, 200, revealed.text);
  assert.equal(revealed.body.value_text, value);
  assert.deepEqual(
    [revealed.body.key_text, revealed.body.error_stack],
    [`key ${canary}`, `at ${canary} password=hunter2`],
  );
  const rows = await guarded.system.db.query(sql`
    SELECT action, outcome, reason, resource, topics FROM audit.events WHERE action = 'dlq:payloads:view'`);
  assert.deepEqual(rows, [
    {
      action: 'dlq:payloads:view',
      outcome: 'success',
      reason: 'ticket 4711',
      resource: `dlq/messages/${ids['message']}`,
      topics: [topic],
    },
  ]);
});

test('an edit never stores a mask', async () => {
  const admin = await guarded.as(['sys_admin']);
  const path = `/api/v1/dlq/messages/${ids['message']}`;
  const edit = async (body: object) => {
    const { headers } = await admin.get(path);
    return admin.post<{ version: number }>(
      `${path}/edit`,
      { reason: 'a test', ...body },
      { 'if-match': headers.get('etag') ?? '' },
    );
  };
  const shown = JSON.stringify((await showProtected(admin, ids['message'])).payload);
  for (const [part, body] of [
    ['value', { value: shown }],
    ['value', { value_base64: Buffer.from(shown).toString('base64') }],
    ['key', { key: 'key [masked]' }],
    ['headers', { headers: [{ key: 'authorization', value: '[masked:abcdefghijklmnop]' }] }],
  ] as const) {
    const { status, text } = await edit(body);
    assert.equal(status, 422, text);
    assert.match(text, new RegExp(`SYS_DLQ_WRONG_EDIT.*"field":"${part}","reason":"masked"`));
  }
  const edited = await edit({ value: JSON.stringify({ order_id: 8, password: 'other hunter2' }) });
  assert.deepEqual([edited.status, edited.body.version], [200, 1], edited.text);
  const { status, text } = await admin.get(`${path}/diff`);
  assert.equal(status, 200, text);
  assert.doesNotMatch(text, hidden);
  assert.match(text, /"sha256":null/);
});

test('a caller reveals at most 60 messages a minute', async () => {
  const operator = await guarded.as(['sys_operator'], { sub: 'somebody else' });
  const path = `/api/v1/dlq/messages/${ids['keyed']}/reveal`;
  const statuses: number[] = [];
  // A minute may begin in between.
  for (let n = 0; n < 125 && statuses.at(-1) !== 429; n += 1)
    statuses.push((await operator.post(path, { reason: 'a test' })).status);
  assert.equal(statuses.at(-1), 429);
  assert.ok(statuses.length > 60);
});
