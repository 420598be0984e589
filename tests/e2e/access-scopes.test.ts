import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { DeclaredRoute, RouteScope } from '../../src/platform/http/access/route-access.ts';
import { type ApiClient } from '../support/api-client.ts';
import { everyRole, startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';
import { storeMessage } from '../support/stored-message.ts';

/**
 * Two of everything: one in the scope of the narrowed roles, and one out of it. Every route with a scope is called for
 * both, from what the routes declare.
 */
type Side = 'in' | 'out';
type Items = Readonly<Record<'message' | 'job' | 'order' | 'saga', string>>;

let guarded: GuardedSystem;
let scoped: readonly (DeclaredRoute & Readonly<{ scope: RouteScope }>)[];
let items: Readonly<Record<Side, Items>>;

const destination = {
  type: 'http',
  url: 'http://127.0.0.1:9/x',
  idempotency: 'enforced',
  dedup_window: '24h',
};

before(async () => {
  guarded = await startGuardedSystem({
    more: {
      roles: ['api'],
      outbox: { destinations: { 'in-a': destination, 'out-a': destination } },
      services: { stock: { type: 'http', base_url: 'http://127.0.0.1:9' } },
    },
  });
  const admin = await guarded.as(['sys_admin']);
  items = { in: await makeItems(admin, 'in'), out: await makeItems(admin, 'out') };
  scoped = (await guarded.system.routes()).flatMap((route) =>
    typeof route.access === 'object' && route.access.scope !== undefined
      ? [{ ...route, scope: route.access.scope }]
      : [],
  );
});
after(() => guarded.drop());

const nameOf: Readonly<Record<RouteScope['by'], Readonly<Record<Side, string>>>> = {
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
  const placed = await made<{ id: number }>('/api/v1/outbox/orders', order, { 'idempotency-key': key });
  return {
    message: await storeMessage(guarded.system.db, { topic: `${side}.a`, status: 'PENDING' }),
    job: job.job_id,
    saga: saga.saga_id,
    order: String(placed.id),
  };
}

function pathOf({ path, scope }: (typeof scoped)[number], side: Side): string {
  const { message, job, order, saga } = items[side];
  const id = path.includes('/dlq/') ? message : path.includes('/jobs/') ? job : order;
  const filled = path
    .replace(':saga_id', saga)
    .replace(':id', id)
    .replace(':step', 'one')
    .replace(':version', '0')
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
  'POST /api/v1/dlq/messages/:id/reopen': () => ({ reason: 'a test' }),
  'POST /api/v1/dlq/messages/:id/edit': (topic) => ({ target_topic: topic, reason: 'a test' }),
  'POST /api/v1/jobs/queues/:queue/claim': () => ({ worker: 'w' }),
  'POST /api/v1/outbox/orders/:id/supersede': () => ({ idempotency_key: 'test-key-body', request: {} }),
};

async function call(route: (typeof scoped)[number], side: Side, role: string) {
  const about = `${route.method} ${route.path}`;
  const body = bodies[about]?.(nameOf[route.scope.by][side]);
  const response = await fetch(`${guarded.system.url}${pathOf(route, side)}`, {
    method: route.method,
    signal: AbortSignal.timeout(20_000),
    headers: {
      authorization: `Bearer ${await guarded.tokenOf([role])}`,
      'idempotency-key': 'test-key-body',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
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

test('every list shows what is in scope and nothing else, and counts only that', async () => {
  const lists = scoped.filter(isList).filter(({ path }) => !path.endsWith('/ids'));
  assert.ok(lists.length >= 8, String(lists.length));
  for (const route of lists) {
    const { about, status, text, body } = await call(route, 'in', 'narrow_sys_admin');
    assert.equal(status, 200, `${about}: ${text}`);
    assert.match(text, /"in[.-]a"/, about);
    assert.doesNotMatch(text, /out[.-]a/, about);
    const { pagination } = body as { pagination?: { total_count: number; has_next: boolean } };
    const listed = Object.values(body as object).find((field) => Array.isArray(field)) as
      | readonly unknown[]
      | undefined;
    if (pagination !== undefined)
      assert.deepEqual([pagination.total_count, pagination.has_next], [listed?.length, false], about);
    const whole = await call(route, 'in', 'sys_admin');
    if (!route.path.includes(':')) assert.match(whole.text, /"out[.-]a"/, `${about} as an admin`);
  }
});

test('ids are completed only in scope', async () => {
  for (const { path } of scoped.filter((route) => isList(route) && route.path.endsWith('/ids'))) {
    const kind = path.includes('/dlq/') ? 'message' : path.includes('/jobs/') ? 'job' : 'saga';
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
    for (const route of scoped.filter((one) => !isList(one))) {
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
  for (const route of scoped.filter((one) => !isList(one)).toSorted((a, b) => order(a) - order(b))) {
    const { about, status, text } = await call(route, 'in', 'narrow_sys_admin');
    assert.ok(
      status !== 401 && status !== 403 && (status !== 404 || text.includes('queue not found')),
      `${about}: ${text}`,
    );
  }
});
