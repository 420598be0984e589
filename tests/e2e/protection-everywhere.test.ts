import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { after, before, test } from 'node:test';
import { runCli } from '../../src/cli/run-cli.ts';
import { createProtection } from '../../src/kernel/protect/protection.ts';
import type { DeclaredRoute } from '../../src/platform/http/access/route-access.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createLogger } from '../../src/platform/telemetry/logger.ts';
import { canary, hideCanaries, names, protect, secrets, type Hidden } from '../support/canaries.ts';
import { eventually } from '../support/eventually.ts';
import { humanRoles, startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';

/** A secret in every place of every slice: it is nowhere in what anybody is shown, except by a reveal. */
let guarded: GuardedSystem;
let hidden: Hidden;
let reads: readonly DeclaredRoute[];
const lines: string[] = [];

before(async () => {
  const { rules, patterns } = protect;
  const rule = { names: {}, fields: [], headers: [], key: false, patterns: [] };
  const masks = createProtection({
    rules: rules.map((each) => ({ ...rule, ...each, action: 'mask' as const })),
    patterns,
    hashKey: null,
  }).ofEverything();
  guarded = await startGuardedSystem({
    logger: createLogger({
      service: 'test',
      version: '0',
      environment: 'test',
      level: 'info',
      cover: masks.json,
      stream: { write: (line) => void lines.push(line) },
    }),
    more: {
      protect,
      roles: ['api', 'workers'],
      jobs: { queues: { [names.queue]: { target: { type: 'http', url: 'http://127.0.0.1:9/jobs' } } } },
      outbox: {
        destinations: {
          [names.destination]: {
            type: 'http',
            url: 'http://127.0.0.1:9/x',
            idempotency: 'enforced',
            dedup_window: '24h',
          },
        },
      },
      services: { stock: { type: 'http', base_url: 'http://127.0.0.1:9' } },
      notify: [
        { name: 'hook', type: 'webhook', url: 'http://127.0.0.1:9/hook', secret: 'a secret of 16 letters' },
        { name: 'chat', type: 'slack', url: 'http://127.0.0.1:9/chat' },
        {
          name: 'mail',
          type: 'email',
          host: '127.0.0.1',
          port: 9,
          security: 'none',
          from: 'a@b.example',
          to: ['c@d.example'],
        },
      ],
    },
  });
  hidden = await hideCanaries(guarded.system.db);
  const admin = await guarded.as(['sys_admin']);
  const done = async (path: string, body: object): Promise<void> => {
    const { status, text } = await admin.post(`/api/v1${path}`, body);
    assert.ok(status < 300, text);
    assert.doesNotMatch(text, secrets, path);
  };
  await done(`/jobs/queues/${names.queue}/pause`, { reason: `look at ${canary}` });
  await done(`/jobs/${hidden.job}/discard`, { reason: `look at ${canary}` });
  await done('/dlq/redrives', { filter: { topic: names.topic }, reason: `look at ${canary}` });
  // The gates of destinations are read every few seconds.
  await eventually(async () =>
    assert.match((await admin.get('/api/v1/outbox/destinations')).text, /\[masked/),
  );
  reads = (await guarded.system.routes()).filter(
    ({ method, path }) => method === 'GET' && path.startsWith('/api/v1') && !path.endsWith('/events'),
  );
});
after(() => guarded.drop());

function pathOf({ path }: DeclaredRoute): string {
  const item = path.startsWith('/api/v1/jobs')
    ? hidden.job
    : path.startsWith('/api/v1/outbox')
      ? hidden.order
      : hidden.message;
  return path
    .replace('/workflows/:name', `/workflows/${names.workflow}`)
    .replace(':saga_id', hidden.saga)
    .replace(':id', item)
    .replace(':key', hidden.plainKey)
    .replace(':topic', names.topic)
    .replace(':version', '0')
    .replace(':fingerprint', hidden.fingerprint)
    .replaceAll(/:\w+/g, 'x');
}

for (const role of [...humanRoles, 'narrowed'])
  test(`no GET route shows a ${role} a secret`, async () => {
    const api = await guarded.as([role === 'narrowed' ? 'narrow_sys_operator' : role]);
    const masked = new Set<string>();
    for (const route of reads) {
      const { status, text } = await api.get(pathOf(route));
      assert.ok(status < 500, `${route.path}: ${text}`);
      assert.doesNotMatch(text, secrets, `${route.path} ${status}`);
      if (text.includes('[masked')) masked.add(route.path);
    }
    if (role === 'narrowed') return;
    for (const path of [
      '/api/v1/jobs',
      '/api/v1/jobs/:id',
      '/api/v1/jobs/queues',
      '/api/v1/outbox/orders',
      '/api/v1/outbox/orders/:id',
      '/api/v1/outbox/ledger/:key',
      '/api/v1/outbox/destinations',
      '/api/v1/sagas',
      '/api/v1/sagas/:saga_id',
      '/api/v1/services',
      '/api/v1/activity',
      '/api/v1/dlq/messages/:id',
    ])
      assert.ok(masked.has(path), `${path} was masked nowhere`);
  });

const items = (): readonly (readonly [permission: string, path: string])[] => [
  ['jobs:payloads:view', `/api/v1/jobs/${hidden.job}`],
  ['outbox:payloads:view', `/api/v1/outbox/orders/${hidden.order}`],
  ['saga:payloads:view', `/api/v1/sagas/${hidden.saga}`],
];

test('a reveal shows all of an item, and is on record once a minute', async () => {
  const operator = await guarded.as(['sys_operator']);
  for (const [permission, path] of items()) {
    for (let n = 0; n < 3; n += 1) {
      const { status, text } = await operator.post(`${path}/reveal`, { reason: 'ticket 4711' });
      assert.equal(status, 200, text);
      assert.match(text, secrets);
      assert.doesNotMatch(text, /\[masked/);
    }
    const rows = await guarded.system.db.query<{ reason: string }>(sql`
      SELECT reason FROM audit.events WHERE action = ${permission} AND outcome = 'success'`);
    // A minute may begin in between.
    assert.ok(rows.length >= 1 && rows.length <= 2, String(rows.length));
    assert.equal(rows[0]?.reason, 'ticket 4711');
    assert.equal((await operator.post(`${path}/reveal`, {})).status, 400);
    for (const [role, status] of [
      ['sys_auditor', 403],
      ['narrow_sys_operator', 404],
    ] as const) {
      const refused = await (await guarded.as([role])).post(`${path}/reveal`, { reason: 'curious' });
      assert.equal(refused.status, status, refused.text);
      assert.doesNotMatch(refused.text, secrets);
    }
  }
});

test('who may not see payloads sees none of them, and who may sees all but the protected parts', async () => {
  const [auditor, operator] = [await guarded.as(['sys_auditor']), await guarded.as(['sys_operator'])];
  const [, job] = items()[0] ?? [];
  const seen = (await operator.get<{ payload: object; masked: true }>(job ?? '')).body;
  const protectedParts = { password: '[masked]', card: '[masked]', note: '[masked]' };
  assert.deepEqual(seen.payload, {
    part: 'payload',
    deep: [{ password: { x: '[masked]' } }],
    ...protectedParts,
  });
  assert.equal(seen.masked, true);
  const { payload, result, progress } = (await auditor.get<Readonly<Record<string, unknown>>>(job ?? ''))
    .body;
  assert.deepEqual([payload, result, progress], ['[masked]', '[masked]', '[masked]']);
});

test('a producer sees what it added as the rules say, without the permission', async () => {
  const producer = await guarded.as(['producer'], { sub: 'the shop' });
  const payload = { order_id: 7, password: 'hunter2' };
  const added = await producer.post<{ job_id: string }>('/api/v1/jobs', { queue: 'other', payload });
  assert.equal(added.status, 202, added.text);
  const path = `/api/v1/jobs/${added.body.job_id}`;
  const shown = { order_id: 7, password: '[masked]' };
  assert.deepEqual((await producer.get<{ payload: object }>(path)).body.payload, shown);
  const auditor = await guarded.as(['sys_auditor']);
  assert.equal((await auditor.get<{ payload: unknown }>(path)).body.payload, '[masked]');
});

test('what is covered can be searched for only by those who see payloads', async () => {
  const [auditor, operator] = [await guarded.as(['sys_auditor']), await guarded.as(['sys_operator'])];
  for (const path of [
    `/api/v1/jobs?dedupe_key=dedupe-${canary}`,
    `/api/v1/jobs/facets?dedupe_key=dedupe-${canary}`,
    '/api/v1/jobs/dead?error=error+failed+on',
    '/api/v1/jobs?error=error+failed+on',
    `/api/v1/outbox/orders?idempotency_key=order-${canary}`,
    `/api/v1/outbox/orders/facets?ordering_key=lane-${canary}`,
    `/api/v1/outbox/ledger/order-${canary}`,
    `/api/v1/sagas?correlation_id=correlation-${canary}`,
    `/api/v1/sagas/facets?correlation_id=correlation-${canary}`,
    `/api/v1/dlq/messages?error_class=Failed.${canary}`,
    `/api/v1/dlq/messages/facets?not_error_class=Failed.${canary}`,
    `/api/v1/dlq/groups?error_class=Failed.${canary}`,
    '/api/v1/dlq/messages/suggest?field=key&prefix=canary-7',
  ]) {
    const { status, text } = await auditor.get(path);
    assert.equal(status, 403, `${path}: ${text}`);
    assert.doesNotMatch(text, secrets);
    const found = await operator.get(path);
    assert.equal(found.status, 200, `${path}: ${found.text}`);
    assert.doesNotMatch(found.text, secrets);
  }
  assert.equal((await auditor.get('/api/v1/jobs?dedupe_key=order-7')).status, 200);
  const suggested = await auditor.get<{ values: readonly unknown[] }>(
    '/api/v1/dlq/messages/suggest?field=error_class&prefix=Failed.canary-7',
  );
  assert.deepEqual(suggested.body.values, []);
});

test('the command line prints no secret, but what a reveal shows', async () => {
  const token = await guarded.tokenOf(['sys_operator']);
  const run = async (words: string): Promise<string> => {
    let said = '';
    const into = { write: (data: string | Uint8Array) => void (said += data.toString()) };
    const env = { REDRIVE_URL: guarded.system.url, REDRIVE_TOKEN: token };
    const code = await runCli(words.split(' '), {
      env,
      stdin: new PassThrough(),
      stdout: into,
      stderr: into,
    });
    assert.equal(code, 0, `${words}: ${said}`);
    return said;
  };
  for (const words of [
    'dlq list',
    `dlq show ${hidden.message}`,
    `dlq history ${hidden.message}`,
    'dlq groups',
    'jobs list',
    'jobs dead --resolution any',
    'jobs queues',
    `jobs show ${hidden.job}`,
    'outbox list',
    `outbox show ${hidden.order}`,
    `outbox ledger ${hidden.plainKey}`,
    'outbox destinations',
    'saga list',
    `saga show ${hidden.saga}`,
  ])
    assert.doesNotMatch(await run(words), secrets, words);
  for (const words of [
    `dlq reveal ${hidden.message}`,
    `jobs reveal ${hidden.job}`,
    `outbox reveal ${hidden.order}`,
    `saga reveal ${hidden.saga}`,
  ])
    assert.match(await run(`${words} --reason ticket-4711`), secrets, words);
  assert.match(await run(`jobs show ${hidden.job}`), /redrive jobs reveal/);
});

test('notifications and log lines have no secret', async () => {
  for (const [slice, kind, subject] of [
    ['dlq', 'dead', names.topic],
    ['outbox', 'dead', names.destination],
    ['jobs', 'dead_letter', names.queue],
    ['saga', 'stuck', names.workflow],
  ])
    await guarded.system.db.query(sql`
      INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
      VALUES (${slice}, ${kind}, ${subject}, 'some-id', ${`it failed on password=hunter2 and ${canary}`})`);
  const requests = await eventually(async () => {
    const rows = await guarded.system.db.query<{ request: string }>(sql`
      SELECT request_json::text AS request FROM outbox.outbox_orders WHERE destination LIKE '\\_notify%'`);
    assert.ok(rows.length >= 12, String(rows.length));
    return rows;
  });
  for (const { request } of requests) {
    assert.doesNotMatch(request, secrets);
    assert.match(request, /\[masked\]/);
  }
  assert.ok(lines.some((line) => line.includes('[masked]')));
  assert.deepEqual(
    lines.filter((line) => secrets.test(line)),
    [],
  );
});
