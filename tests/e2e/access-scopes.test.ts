import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { entryId } from '../../src/console/inbox/entry-id.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { DeclaredRoute, RouteScope } from '../../src/platform/http/access/route-access.ts';
import { type ApiClient } from '../support/api-client.ts';
import { redriveInState } from '../support/redrives.ts';
import { everyRole, startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';

/**
 * Two of everything: one in the scope of the narrowed roles, and one out of it. Every route with a scope is called for
 * both, from what the routes declare.
 */
type Side = 'in' | 'out';
type Items = Readonly<Record<'message' | 'job' | 'order' | 'saga' | 'redrive', string>>;

let guarded: GuardedSystem;
let scoped: readonly (DeclaredRoute & Readonly<{ scope: RouteScope }>)[];
let items: Readonly<Record<Side, Items>>;

const destination = {
  type: 'http',
  url: 'http://127.0.0.1:9/x',
  idempotency: 'enforced',
  dedup_window: '24h',
};

const schedule = (queue: string): object => ({ schedule: '0 3 * * *', queue });

before(async () => {
  guarded = await startGuardedSystem({
    more: {
      roles: ['api'],
      outbox: { destinations: { 'in-a': destination, 'out-a': destination } },
      services: { stock: { type: 'http', base_url: 'http://127.0.0.1:9' } },
      jobs: { cron: { 'in-a': schedule('in-a'), 'out-a': schedule('out-a') } },
    },
  });
  const admin = await guarded.as(['sys_admin']);
  items = { in: await makeItems(admin, 'in'), out: await makeItems(admin, 'out') };
  for (const { redrive } of Object.values(items)) await redriveInState(admin, redrive, 'planned');
  scoped = (await guarded.system.routes()).flatMap((route) =>
    typeof route.access === 'object' && route.access.scope !== undefined
      ? [{ ...route, scope: route.access.scope }]
      : [],
  );
});
after(() => guarded.drop());

const nameOf: Readonly<Record<RouteScope['by'], Readonly<Record<Side, string>>>> = {
  any: { in: 'in.a', out: 'out.a' },
  topics: { in: 'in.a', out: 'out.a' },
  queues: { in: 'in-a', out: 'out-a' },
  destinations: { in: 'in-a', out: 'out-a' },
  workflows: { in: 'in-a', out: 'out-a' },
};

async function makeItems(admin: ApiClient, side: Side): Promise<Items> {
  const made = async <Body>(path: string, body: object, headers = {}): Promise<Body> => {
    const answer = await admin.post<Body>(path, body, headers);
    assert.ok(answer.status < 300, answer.text);
    return answer.body;
  };
  const name = `${side}-a`;
  const step = { name: 'one', service: 'stock', method: 'POST /a', compensate: 'POST /b' };
  await made('/api/v1/workflows', { workflow_yaml: JSON.stringify({ name, steps: [step] }) });
  const key = `test-key-${side}`;
  const order = { destination: name, idempotency_key: key, request: {} };
  const job = await made<{ job_id: string }>('/api/v1/jobs', { queue: name, payload: {} });
  const dead = await made<{ job_id: string }>('/api/v1/jobs', { queue: name, payload: {} });
  await guarded.system.db.query(sql`
    UPDATE jobs.job_queue SET status = 'dead_letter', retry_count = 3, completed_at = clock_timestamp(),
           error_message = 'it broke', lease_epoch = nextval('platform.lease_epochs')
    WHERE job_id = ${dead.job_id}`);
  const saga = await made<{ saga_id: string }>('/api/v1/sagas', { workflow_name: name, payload: {} });
  await makeSource(side);
  await makePolicy(side);
  const placed = await made<{ id: number }>('/api/v1/outbox/orders', order, { 'idempotency-key': key });
  const message = await makeMessage(side);
  const filter = { topic: `${side}.a` };
  const redrive = await made<{ id: string }>('/api/v1/dlq/redrives', { filter, reason: 'a test' });
  return {
    message,
    redrive: redrive.id,
    job: job.job_id,
    saga: saga.saga_id,
    order: String(placed.id),
  };
}

/** Of the note that the route before the one that deletes it adds. */
const noteId = '01a1dfae-c3a5-7000-8007-f35eedc32391';

/** The cause that the messages of both sides have in common. */
const fingerprint = 'v1:00000000000000aa';

async function makeMessage(side: Side): Promise<string> {
  const id = randomUUID();
  const at = side === 'in' ? '2026-02-01T00:00:00Z' : '2026-03-01T00:00:00Z';
  await guarded.system.db.query(sql`
    INSERT INTO dlq.dlq_messages
      (id, original_topic, error_message, payload, fingerprint, message_key, created_at, updated_at)
    VALUES (${id}, ${`${side}.a`}, ${`it broke ${side}-a`}, '{}', ${fingerprint}, ${Buffer.from(`key-${side}-a`)},
            ${at}, ${at})`);
  return id;
}

/** A partition of a dead-letter topic of a cluster that nobody reads. */
async function makeSource(side: Side): Promise<void> {
  await guarded.system.db.query(sql`
    INSERT INTO dlq.source_partitions
      (cluster_id, topic, topic_id, partition, first_offset, next_offset, high_offset, stored)
    VALUES ('gone', ${`${side}.a`}, gen_random_uuid(), 0, 0, 1, 1, ${side === 'in' ? 1 : 0})`);
}

async function makePolicy(side: Side): Promise<void> {
  const definition = {
    topics: [`${side}.*`],
    error_classes: null,
    fingerprints: null,
    delay_seconds: 60,
    backoff: 1,
    max_attempts: 3,
    rate_per_second: null,
    canary: null,
  };
  await guarded.system.db.query(sql`
    INSERT INTO dlq.retry_policies (name, place, definition)
    VALUES (${`${side}-a`}, 1, ${JSON.stringify(definition)}::jsonb)`);
}

function pathOf({ path, scope }: (typeof scoped)[number], side: Side): string {
  const { message, job, order, saga, redrive } = items[side];
  const ofDlq = path.includes('/redrives/') ? redrive : message;
  const entry = entryId({ kind: 'messages', key: [fingerprint, `${side}.a`] });
  if (path.includes('/inbox/')) return path.replace(':id', entry).replace(':note', noteId);
  const id = path.includes('/dlq/') ? ofDlq : path.includes('/jobs/') ? job : order;
  const filled = path
    .replace(':saga_id', saga)
    .replace(':id', id)
    .replace(':step', 'one')
    .replace(':version', '0')
    .replace(':partition', '0')
    .replace('/policies/:name', `/policies/${side}-a`)
    .replace(':fingerprint', encodeURIComponent(fingerprint))
    .replace(':key', `test-key-${side}`)
    .replace(/:(queue|name|topic)/, nameOf[scope.by][side]);
  assert.ok(!filled.includes(':'), `${path} has a parameter that this test does not know`);
  return filled;
}

/** Bodies of the routes whose scope is in the body, and of others that need one to get as far as that. */
const bodies: Readonly<Record<string, (name: string) => object>> = {
  'POST /api/v1/jobs': (queue) => ({ queue, payload: {} }),
  'POST /api/v1/jobs/requeue': (queue) => ({ queue, preview: true }),
  'POST /api/v1/outbox/orders': (one) => ({
    destination: one,
    idempotency_key: 'test-key-body',
    request: {},
  }),
  'POST /api/v1/sagas': (workflow_name) => ({ workflow_name, payload: {} }),
  'POST /api/v1/sagas/retry': (workflow_name) => ({ workflow_name, preview: true }),
  'POST /api/v1/sagas/:saga_id/steps/:step/retry': () => ({ reason: 'a test' }),
  'POST /api/v1/sagas/:saga_id/steps/:step/skip': () => ({ reason: 'a test' }),
  'POST /api/v1/sagas/:saga_id/steps/:step/resolve': () => ({ reason: 'a test', outcome: 'not_done' }),
  'POST /api/v1/jobs/:id/complete': () => ({ epoch: 1 }),
  'POST /api/v1/jobs/:id/fail': () => ({ epoch: 1, error: 'x' }),
  'POST /api/v1/jobs/:id/release': () => ({ epoch: 1 }),
  'POST /api/v1/jobs/:id/heartbeat': () => ({ epoch: 1 }),
  'POST /api/v1/dlq/messages/:id/route': (topic) => ({ target_topic: topic, reason: 'a test' }),
  'POST /api/v1/dlq/messages/:id/reveal': () => ({ reason: 'a test' }),
  'POST /api/v1/jobs/:id/reveal': () => ({ reason: 'a test' }),
  'POST /api/v1/outbox/orders/:id/reveal': () => ({ reason: 'a test' }),
  'POST /api/v1/sagas/:saga_id/reveal': () => ({ reason: 'a test' }),
  'POST /api/v1/dlq/messages/:id/reopen': () => ({ reason: 'a test' }),
  'POST /api/v1/dlq/messages/:id/edit': (topic) => ({ target_topic: topic, reason: 'a test' }),
  'POST /api/v1/inbox/:id/assign': () => ({ owner: 'me' }),
  'POST /api/v1/inbox/:id/snooze': () => ({}),
  'POST /api/v1/inbox/:id/done': () => ({ reason: 'a test' }),
  'POST /api/v1/inbox/:id/notes': () => ({ text: 'a test', note_id: noteId }),
  'POST /api/v1/dlq/redrives/:id/approve': () => ({ reason: 'a test' }),
  'POST /api/v1/dlq/policies/:name/pause': () => ({ reason: 'a test' }),
  'POST /api/v1/dlq/policies/:name/resume': () => ({ reason: 'a test' }),
  'POST /api/v1/dlq/sources/:topic/:partition/seek': () => ({ earliest: true, reason: 'a test' }),
  'POST /api/v1/jobs/queues/:queue/claim': () => ({ worker: 'w' }),
  'POST /api/v1/outbox/orders/:id/supersede': () => ({ idempotency_key: 'test-key-body', request: {} }),
};

/** Of routes that need one. */
const queries: Readonly<Record<string, string>> = {
  'DELETE /api/v1/dlq/sources/:topic/:partition': '?reason=test',
  'GET /api/v1/dlq/messages/suggest': '?field=topic',
};

async function call(route: (typeof scoped)[number], side: Side, role: string) {
  const about = `${route.method} ${route.path}`;
  const body = bodies[about]?.(nameOf[route.scope.by][side]);
  const query = queries[about] ?? '';
  const response = await fetch(`${guarded.system.url}${pathOf(route, side)}${query}`, {
    method: route.method,
    signal: AbortSignal.timeout(20_000),
    headers: {
      authorization: `Bearer ${await guarded.tokenOf([role])}`,
      'idempotency-key': 'test-key-body',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (isStream) await response.body?.cancel();
  const text = isStream ? '{}' : await response.text();
  const error =
    response.status < 400 ? null : (JSON.parse(text) as { error: { code: string; message: string } });
  return {
    about,
    status: response.status,
    text,
    code: error?.error.code ?? '',
    body: JSON.parse(text) as unknown,
  };
}

const isList = ({ scope }: (typeof scoped)[number]): boolean => scope.in === 'list';
/** What a plan may select is tested in tests/e2e/access-redrives.test.ts. */
const isPlan = ({ method, path }: DeclaredRoute): boolean =>
  `${method} ${path}` === 'POST /api/v1/dlq/redrives';

test('every list shows what is in scope and nothing else, and counts only that', async () => {
  const lists = scoped.filter(isList).filter(({ path }) => !path.endsWith('/ids'));
  assert.ok(lists.length >= 8, String(lists.length));
  for (const route of lists) {
    const { about, status, text, body } = await call(route, 'in', 'narrow_sys_admin');
    assert.equal(status, 200, `${about}: ${text}`);
    assert.match(text, /["/]in[.-]a"/, about);
    assert.doesNotMatch(text, /out[.-]a/, about);
    const { pagination } = body as { pagination?: { total_count: number; has_next: boolean } };
    const listed = Object.values(body as object).find((field) => Array.isArray(field)) as
      | readonly unknown[]
      | undefined;
    if (pagination !== undefined)
      assert.deepEqual([pagination.total_count, pagination.has_next], [listed?.length, false], about);
    const whole = await call(route, 'in', 'sys_admin');
    if (!route.path.includes(':')) assert.match(whole.text, /["/]out[.-]a"/, `${about} as an admin`);
  }
});

test('a list of what is out of scope is empty or not found', async () => {
  for (const route of scoped.filter((one) => isList(one) && one.path.includes(':'))) {
    if (route.path.endsWith(':fingerprint')) continue;
    const { about, status, text, body } = await call(route, 'out', 'narrow_sys_admin');
    if (status === 404) continue;
    assert.equal(status, 200, `${about}: ${text}`);
    assert.equal((body as { pagination: { total_count: number } }).pagination.total_count, 0, about);
  }
});

test('a group shows a narrowed role the messages in scope only: counts, times, keys and the sample', async () => {
  type Group = Readonly<
    Record<'count' | 'first_at' | 'last_at' | 'sample_id' | 'top_keys' | 'trend', unknown>
  >;
  const [narrow, admin] = [await guarded.as(['narrow_sys_auditor']), await guarded.as(['sys_admin'])];
  const { body: whole } = await admin.get<Group>(`/api/v1/dlq/groups/${fingerprint}`);
  assert.deepEqual([whole.count, whole.sample_id], [2, items.out.message]);
  const { body: group } = await narrow.get<Group>(`/api/v1/dlq/groups/${fingerprint}`);
  const at = '2026-02-01T00:00:00.000+00:00';
  assert.deepEqual([group.count, group.first_at, group.last_at], [1, at, at]);
  assert.equal(group.sample_id, items.in.message);
  assert.deepEqual(group.top_keys, [{ key: 'key-in-a', count: 1 }]);
  const sum = ({ trend }: Group): number => (trend as readonly number[]).reduce((all, one) => all + one, 0);
  assert.deepEqual([sum(group), sum(whole)], [1, 2]);
});

test('the books are balanced as far as the role sees them', async () => {
  const path = '/api/v1/dlq/accounting';
  const of = async (role: string) => (await (await guarded.as([role])).get<{ balanced: boolean }>(path)).body;
  assert.equal((await of('narrow_sys_auditor')).balanced, true);
  assert.equal((await of('sys_auditor')).balanced, false);
});

test('ids are completed only in scope', async () => {
  for (const { path } of scoped.filter((route) => isList(route) && route.path.endsWith('/ids'))) {
    const kind = path.includes('/redrives/')
      ? 'redrive'
      : path.includes('/dlq/')
        ? 'message'
        : path.includes('/jobs/')
          ? 'job'
          : 'saga';
    const narrow = await guarded.as(['narrow_sys_admin']);
    for (const side of ['in', 'out'] as const) {
      const found = await narrow.get<{ ids: readonly unknown[] }>(`${path}?prefix=${items[side][kind]}`);
      assert.equal(found.body.ids.length, side === 'in' ? 1 : 0, `${path} ${side}`);
    }
  }
});

for (const role of everyRole)
  test(`a narrowed ${role} reaches no item out of scope`, async () => {
    const admin = await guarded.as(['sys_admin']);
    for (const route of scoped.filter((one) => !isList(one) && !isPlan(one))) {
      const { about, status, code, text } = await call(route, 'out', `narrow_${role}`);
      assert.ok(
        status === 404 || (status === 403 && code === 'SYS_AUTH_PERMISSION_DENIED'),
        `${about}: ${text}`,
      );
    }
    const { job, order, saga, message } = items.out;
    for (const [path, state] of [
      [`/api/v1/jobs/${job}`, 'pending'],
      [`/api/v1/outbox/orders/${order}`, 'queued'],
      [`/api/v1/sagas/${saga}`, 'STARTED'],
      [`/api/v1/dlq/messages/${message}`, 'PENDING'],
    ] as const)
      assert.match((await admin.get(path)).text, new RegExp(`"status":"${state}"`), path);
  });

test('an item out of scope is reported like one that does not exist', async () => {
  const narrow = await guarded.as(['narrow_sys_auditor']);
  const unknown = '01a1dfae-c3a5-7000-8007-f35eedc32390';
  for (const [path, id, other] of [
    ['/api/v1/jobs/', items.out.job, unknown],
    ['/api/v1/dlq/messages/', items.out.message, unknown],
    ['/api/v1/sagas/', items.out.saga, unknown],
    ['/api/v1/outbox/orders/', items.out.order, '999999'],
    ['/api/v1/workflows/', 'out-a', 'out-b'],
    ['/api/v1/dlq/policies/', 'out-a', 'out-b'],
    ['/api/v1/dlq/redrives/', items.out.redrive, unknown],
    ['/api/v1/outbox/ledger/', 'test-key-out', 'test-key-none'],
  ] as const) {
    const [hidden, missing] = [await narrow.get(`${path}${id}`), await narrow.get(`${path}${other}`)];
    const told = ({ text }: { text: string }) =>
      text.replace(/"request_id":"[^"]*"/, '').replaceAll(id, other);
    assert.equal(hidden.status, 404, path);
    assert.equal(told(hidden), told(missing), path);
  }
});

test('a narrowed admin reaches every item in scope', async () => {
  // What deletes comes last.
  const order = ({ method }: DeclaredRoute): number => ['GET', 'POST', 'DELETE'].indexOf(method);
  const isApproval = ({ path }: DeclaredRoute): boolean => path.endsWith('/approve');
  const acts = scoped.filter((one) => !isList(one) && !isPlan(one) && !isApproval(one));
  for (const route of acts.toSorted((a, b) => order(a) - order(b))) {
    const { about, status, text } = await call(route, 'in', 'narrow_sys_admin');
    assert.ok(
      status !== 401 && status !== 403 && (status !== 404 || text.includes('queue not found')),
      `${about}: ${text}`,
    );
  }
});

test('the history of a deleted message is shown to those whose role covers its topic', async () => {
  const admin = await guarded.as(['sys_admin']);
  const narrowed = await guarded.as(['narrow_sys_auditor']);
  for (const [side, status] of [
    ['in', 200],
    ['out', 404],
  ] as const) {
    const path = `/api/v1/dlq/messages/${await makeMessage(side)}`;
    assert.equal((await admin.delete(path)).status, 200);
    assert.equal((await admin.get(`${path}/history`)).status, 200);
    const { status: found, text } = await narrowed.get(`${path}/history`);
    assert.equal(found, status, text);
  }
});
