import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, type ApiClient } from '../support/api-client.ts';
import { startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';
import {
  commandRedrive,
  endedRedrive,
  planRedrive,
  redriveInState,
  showRedrive,
  type RedriveView,
} from '../support/redrives.ts';
import { showMessage, storeMessage, type RetryAllView } from '../support/stored-message.ts';
import type { TestSystem } from '../support/start-system.ts';

/** Redrives act for people who are not there: what they may do is checked at the plan, at the start and all the time. */
let guarded: GuardedSystem;
let replica: TestSystem;
before(async () => {
  guarded = await startGuardedSystem({
    more: { dlq: { redrive: { max_without_approval: 4 } } },
  });
  replica = await guarded.startReplica();
});
after(async () => {
  await replica.drop();
  await guarded.drop();
});
afterEach(() =>
  guarded.system.db.query(sql`
    TRUNCATE dlq.dlq_messages, dlq.message_history, dlq.redrives, dlq.redrive_items, dlq.bulk_acts`),
);

const root = '/api/v1/dlq/redrives';
let tokens = 0;

/** A person with these roles; each token of a person is newer than the one before. */
function tokenOf(person: string, ...roles: readonly string[]): Promise<string> {
  tokens += 1;
  return guarded.tokenOf(roles, { sub: person, iat: Math.floor(Date.now() / 1000) - 1000 + tokens });
}

async function as(person: string, ...roles: readonly string[]): Promise<ApiClient> {
  return guarded.withToken(await tokenOf(person, ...roles));
}

async function store(topic: string, count: number): Promise<readonly string[]> {
  const ids = [];
  for (let i = 0; i < count; i += 1) ids.push(await storeMessage(guarded.system.db, { topic }));
  return ids;
}

const plan = async (api: ApiClient, body: object = {}, state = 'planned'): Promise<RedriveView> => {
  const answer = await api.post<{ id: string }>(root, { filter: {}, reason: 'a test', ...body });
  assert.equal(answer.status, 202, answer.text);
  return redriveInState(api, answer.body.id, state);
};

test('a narrowed role plans, sees and starts redrives of its topics only', async () => {
  await store('in.a', 2);
  const [outside = ''] = await store('out.a', 2);
  const narrow = await as('ann', 'narrow_sys_operator');
  const admin = await as('bob', 'sys_admin');

  const own = await plan(narrow);
  assert.equal(own.counts['selected'], 2);
  const named = await plan(narrow, { filter: { ids: [outside] } });
  assert.deepEqual(
    named.excluded.map(({ reason, count }) => [reason, count]),
    [['not_found', 1]],
  );
  const whole = await planRedrive(admin);
  const inside = await planRedrive(admin, { filter: { topic: 'in.a' } });

  const listed = await narrow.get<{ redrives: { id: string }[]; pagination: { total_count: number } }>(root);
  assert.deepEqual(listed.body.redrives.map(({ id }) => id).toSorted(), [own.id, inside.id].toSorted());
  assert.equal(listed.body.pagination.total_count, 2);
  for (const [path, found] of [
    [`/ids?prefix=${whole.id}`, 0],
    [`/ids?prefix=${own.id}`, 1],
  ] as const)
    assert.equal((await narrow.get<{ ids: [] }>(`${root}${path}`)).body.ids.length, found);
  const unknown = '01a1dfae-c3a5-7000-8007-f35eedc32390';
  for (const path of ['', '/items', '/events'])
    assertError(await narrow.get(`${root}/${whole.id}${path}`), 404, 'SYS_DLQ_NOT_FOUND');
  const [hidden, missing] = [await narrow.get(`${root}/${whole.id}`), await narrow.get(`${root}/${unknown}`)];
  const told = ({ text }: { text: string }) =>
    text.replace(/"request_id":"[^"]*"/, '').replaceAll(whole.id, unknown);
  assert.equal(told(hidden), told(missing));
  for (const command of ['start', 'cancel', 'pause', 'resume'])
    assertError(await narrow.post(`${root}/${whole.id}/${command}`, {}), 404, 'SYS_DLQ_NOT_FOUND');

  await commandRedrive(narrow, inside.id, 'start');
  await endedRedrive(narrow, inside.id);
  assert.equal((await showMessage(admin, outside)).status, 'PENDING');

  const auditor = await as('pam', 'narrow_sys_auditor');
  const changesOf = async (api: ApiClient, { id }: RedriveView): Promise<readonly string[]> => {
    const { body } = await api.get<{ events: readonly { detail: { change: string } }[] }>(
      `/api/v1/audit?operation=${id}`,
    );
    return body.events.map(({ detail }) => detail.change).toReversed();
  };
  assert.deepEqual(await changesOf(auditor, inside), ['plan_made', 'start', 'finished']);
  assert.deepEqual(await changesOf(auditor, whole), []);
  assert.deepEqual(await changesOf(admin, whole), ['planned', 'plan_made']);
  const activity = await narrow.get<{ items: readonly { operation_id: string }[] }>('/api/v1/activity');
  assert.deepEqual(
    new Set(activity.body.items.map((item) => item.operation_id)),
    new Set([own.id, inside.id]),
  );
});

test('a bulk decision needs the right to the decision too, for the same topics', async () => {
  const [kept = ''] = await store('in.a', 1);
  const narrow = await as('ann', 'narrow_sys_operator');
  assertError(
    await narrow.post(root, { kind: 'delete', filter: {}, reason: 'a test' }),
    403,
    'SYS_AUTH_PERMISSION_DENIED',
  );
  const deletion = await plan(await as('bob', 'sys_admin'), { kind: 'delete' });
  assertError(await narrow.post(`${root}/${deletion.id}/start`, {}), 403, 'SYS_AUTH_PERMISSION_DENIED');
  assert.equal((await showMessage(narrow, kept)).status, 'PENDING');
  const dead = await plan(narrow, { kind: 'dead' });
  await commandRedrive(narrow, dead.id, 'start');
  await endedRedrive(narrow, dead.id);
  assert.equal((await showMessage(narrow, kept)).status, 'DEAD');
});

test('a large redrive starts only with the approval of a second person, for what they have seen', async () => {
  await store('in.a', 5);
  const ann = await as('ann', 'sys_admin');
  const bob = await as('bob', 'sys_admin');
  const operator = await as('eve', 'sys_operator');
  const keyOfBob = await bob.post<{ key: string }>('/api/v1/keys', { name: 'x', role: 'sys_admin' });
  const viaKey = guarded.withToken(keyOfBob.body.key);

  const { id } = await plan(viaKey, {}, 'awaiting_approval');
  const approve = (api: ApiClient) => api.post(`${root}/${id}/approve`, { reason: 'seen' });
  const refused = await operator.post(`${root}/${id}/start`, {});
  assertError(refused, 409, 'SYS_DLQ_APPROVAL_REQUIRED');
  assert.match(refused.text, /more than 4 messages needs the approval of a second person: this one has 5/);

  assertError(await approve(operator), 403, 'SYS_AUTH_PERMISSION_DENIED');
  // Bob planned it by his key.
  assertError(await approve(bob), 403, 'SYS_AUTH_PERMISSION_DENIED');
  assertError(await approve(viaKey), 403, 'SYS_AUTH_PERMISSION_DENIED');
  const ofAnn = await ann.post<{ key: string }>('/api/v1/keys', { name: 'x', role: 'sys_admin' });
  assertError(await approve(guarded.withToken(ofAnn.body.key)), 403, 'SYS_AUTH_PERMISSION_DENIED');
  assert.equal((await approve(ann)).status, 200);
  assertError(await approve(await as('joe', 'sys_admin')), 409, 'SYS_DLQ_CONFLICT');

  const { headers } = await operator.get(`${root}/${id}`);
  const changed = await fetch(`${guarded.system.url}${root}/${id}`, {
    method: 'PATCH',
    body: JSON.stringify({ rate_per_second: 1000 }),
    headers: {
      authorization: `Bearer ${await tokenOf('eve', 'sys_operator')}`,
      'content-type': 'application/json',
      'if-match': headers.get('etag') ?? '',
    },
  });
  assert.equal(changed.status, 200, await changed.text());
  assertError(await operator.post(`${root}/${id}/start`, {}), 409, 'SYS_DLQ_APPROVAL_REQUIRED');
  // Whoever changed it cannot approve it either.
  const eveAsAdmin = await as('eve', 'sys_admin');
  assertError(await approve(eveAsAdmin), 403, 'SYS_AUTH_PERMISSION_DENIED');
  assert.equal((await approve(ann)).status, 200);
  assertError(await ann.post(`${root}/${id}/start`, {}), 409, 'SYS_DLQ_APPROVAL_REQUIRED');
  await commandRedrive(eveAsAdmin, id, 'start');
  await endedRedrive(eveAsAdmin, id);
  const { body } = await ann.get<{ approval: { actor: string; reason: string }; started_by: string }>(
    `${root}/${id}`,
  );
  assert.match(body.approval.actor, /\|ann$/);
  assert.match(body.started_by, /\|eve$/);
});

test('what a person sends in an hour counts together, by redrives, retry-all and keys', async () => {
  const ann = await as('ann', 'sys_admin');
  const made = await ann.post<{ key: string }>('/api/v1/keys', { name: 'x', role: 'sys_admin' });
  const viaKey = guarded.withToken(made.body.key);
  await store('in.a', 2);
  await viaKey.post<RetryAllView>('/api/v1/dlq/in.a/retry-all');
  await store('in.b', 3);
  const { id } = await plan(ann, { filter: { topic: 'in.b' } });
  const refused = await ann.post(`${root}/${id}/start`, {});
  assertError(refused, 409, 'SYS_DLQ_APPROVAL_REQUIRED');
  assert.match(refused.text, /this one has 3, with 2 more in the last hour/);
  await redriveInState(ann, id, 'awaiting_approval');
  await commandRedrive(await as('bob', 'sys_admin'), id, 'start');
  await endedRedrive(ann, id);
});

test('of two redrives that one person starts at once only as much runs as needs no approval', async () => {
  await store('in.a', 3);
  await store('in.b', 3);
  const ann = await as('pam', 'sys_operator');
  const plans = [
    await plan(ann, { filter: { topic: 'in.a' } }),
    await plan(ann, { filter: { topic: 'in.b' } }),
  ];
  const answers = await Promise.all(plans.map(({ id }) => ann.post(`${root}/${id}/start`, {})));
  assert.deepEqual(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 409],
  );
});

/** One message a second, so that it is in progress for some seconds. */
async function startSlowly(api: ApiClient): Promise<string> {
  await store('in.a', 4);
  const { id } = await plan(api, { rate_per_second: 0.5 });
  await commandRedrive(api, id, 'start');
  return id;
}

test('a redrive pauses when the one who started it loses the right to it, and another person resumes it', async () => {
  const id = await startSlowly(await as('sue', 'sys_operator'));
  // A newer token without the role, seen by the other replica.
  const token = await tokenOf('sue', 'sys_auditor');
  const me = await fetch(`${replica.url}/api/v1/me`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal(me.status, 200);
  const bob = await as('bob', 'sys_admin');
  const paused = await redriveInState(bob, id, 'paused');
  assert.match(paused.state_reason ?? '', /sue does not have the permission dlq:redrives:start/);
  assert.deepEqual([paused.counts['failed'], paused.counts['skipped']], [0, 0]);
  assert.ok((paused.counts['waiting'] ?? 0) > 0);
  await commandRedrive(bob, id, 'resume');
  await guarded.system.db.query(sql`
    UPDATE dlq.redrives SET options = options || '{"rate_per_second": null}' WHERE id = ${id}`);
  const { counts } = await endedRedrive(bob, id);
  assert.equal(counts['not_published'], 4);
});

test('a redrive pauses when the key that started it is revoked', async () => {
  const bob = await as('bob', 'sys_admin');
  const made = await bob.post<{ id: string; key: string }>('/api/v1/keys', {
    name: 'x',
    role: 'sys_operator',
  });
  const id = await startSlowly(guarded.withToken(made.body.key));
  assert.equal((await bob.delete(`/api/v1/keys/${made.body.id}`)).status, 200);
  const paused = await redriveInState(bob, id, 'paused');
  assert.equal(paused.state_reason, `key:${made.body.id} has no rights`);
  assert.equal((await showRedrive(bob, id)).counts['failed'], 0);
});

test('retry-all of a narrowed role retries what is in its scope', async () => {
  const [inside = ''] = await store('in.a', 1);
  const [outside = ''] = await store('out.a', 1);
  await guarded.system.db.query(sql`UPDATE dlq.dlq_messages SET source_topic = 'shared.dlq'`);
  const narrow = await as('tom', 'narrow_sys_admin');
  assertError(await narrow.post('/api/v1/dlq/out.a/retry-all'), 404, 'SYS_DLQ_NOT_FOUND');
  const { body } = await narrow.post<RetryAllView>('/api/v1/dlq/shared.dlq/retry-all');
  assert.deepEqual([body.retried, body.excluded, body.remaining, body.skipped], [1, 0, 0, 0]);
  const admin = await as('bob', 'sys_admin');
  assert.equal((await showMessage(admin, inside)).status, 'RESOLVED');
  assert.equal((await showMessage(admin, outside)).status, 'PENDING');
});
