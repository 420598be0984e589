import assert from 'node:assert/strict';
import { after, before, describe, test, type TestContext } from 'node:test';
import { sql, type Sql } from '../../src/platform/postgres/sql.ts';
import { createApiClient } from '../support/api-client.ts';
import { readEvents, type EventReader, type ServerEvent } from '../support/event-reader.ts';
import { startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';

/** What every page of the console hears: what to read again. */
let guarded: GuardedSystem;
before(async () => void (guarded = await startGuardedSystem({ kafka: 'local' })));
after(() => guarded.drop());

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const tokenOf = (role: string, person = role): Promise<string> => guarded.tokenOf([role], { sub: person });

async function follow(
  t: TestContext,
  role: string,
  headers = {},
  url = guarded.system.url,
): Promise<EventReader> {
  const reader = await readEvents(url, { ...bearer(await tokenOf(role)), ...headers });
  t.after(() => reader.close());
  assert.equal(reader.status, 200);
  return reader;
}

const named =
  (name: string) =>
  ({ event }: ServerEvent) =>
    event === name;
const changeOf =
  (slice: string, id?: string) =>
  ({ event, data }: ServerEvent): boolean =>
    event === 'change' &&
    data['slice'] === slice &&
    (id === undefined || (data['ids'] as readonly string[]).includes(id));
const isMany =
  (slice: string) =>
  ({ event, data }: ServerEvent): boolean =>
    event === 'change' && data['slice'] === slice && data['many'] === true;
const needsAttention =
  (slice: string, count: number) =>
  ({ event, data }: ServerEvent): boolean =>
    event === 'change' &&
    data['slice'] === slice &&
    (data['counts'] as Record<string, number>)['needs_attention'] === count;

async function addJob(queue: string, status = 'pending'): Promise<string> {
  const [row] = await guarded.system.db.query<{ id: string }>(sql`
    INSERT INTO jobs.job_queue (queue, payload, status) VALUES (${queue}, '{}', ${status}) RETURNING job_id AS id`);
  return row?.id ?? assert.fail('no job');
}

async function addMessage(topic: string, hoursAgo = 0): Promise<string> {
  const [row] = await guarded.system.db.query<{ id: string }>(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, source_topic, created_at)
    VALUES (${topic}, 'it failed', ${`${topic}.dlq`}, now() - ${hoursAgo} * interval '1 hour') RETURNING id`);
  return row?.id ?? assert.fail('no message');
}

/** A connection with nothing else to do reports its statistics only after ten seconds. */
async function change(statement: Sql): Promise<void> {
  await guarded.system.db.transaction(async (tx) => {
    await tx.query(statement);
    await tx.query(sql`SELECT pg_stat_force_next_flush()`);
  });
}

test('events are no business of caches and proxies', async (t) => {
  const { headers } = await follow(t, 'sys_admin');
  assert.equal(headers.get('content-type'), 'text/event-stream');
  assert.equal(headers.get('cache-control'), 'no-store');
  assert.equal(headers.get('x-accel-buffering'), 'no');
});

test('a stream begins with resync, and tells changes of all slices by id', async (t) => {
  const reader = await follow(t, 'sys_admin');
  await reader.until(named('resync'));
  assert.equal(reader.events[0]?.event, 'resync');
  await reader.until(changeOf('jobs', await addJob('in-mail')));
  await reader.until(changeOf('dlq', await addMessage('in.orders')));
  const [order] = await guarded.system.db.query<{ id: string }>(sql`
    INSERT INTO outbox.outbox_orders
      (idempotency_key, request_json, request_digest, status, next_attempt_at, destination)
    VALUES ('k', '{}', 'd', 'queued', now() + interval '1 hour', 'in-shop') RETURNING id::text AS id`);
  await reader.until(changeOf('outbox', order?.id));
  const [saga] = await guarded.system.db.query<{ id: string }>(sql`
    INSERT INTO saga.saga_states (workflow_name, status) VALUES ('in-order', 'STARTED') RETURNING id`);
  await reader.until(changeOf('sagas', saga?.id));
});

test('a change that is committed late, after others, is told', async (t) => {
  const reader = await follow(t, 'sys_admin');
  await reader.until(named('resync'));
  let late = '';
  await guarded.system.db.transaction(async (tx) => {
    const [row] = await tx.query<{ id: string }>(sql`
      INSERT INTO jobs.job_queue (queue, payload) VALUES ('in-late', '{}') RETURNING job_id AS id`);
    late = row?.id ?? '';
    await reader.until(changeOf('jobs', await addJob('in-early')));
    assert.ok(!reader.events.some(changeOf('jobs', late)));
  });
  await reader.until(changeOf('jobs', late));
});

test('what was deleted, and what was changed where nobody looks, is told as many', async (t) => {
  const old = await addMessage('in.old', 5000);
  await guarded.system.db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, source_topic)
    SELECT 'in.orders', 'it failed', 'in.orders.dlq' FROM generate_series(1, 400)`);
  const reader = await follow(t, 'sys_admin');
  await reader.until(named('resync'));
  await change(sql`UPDATE dlq.dlq_messages SET version = version + 1 WHERE id = ${old}`);
  await reader.until(isMany('dlq'));
  const id = await addJob('in-mail');
  await reader.until(changeOf('jobs', id));
  const before = reader.events.length;
  await change(sql`DELETE FROM jobs.job_queue WHERE job_id = ${id}`);
  await reader.until(isMany('jobs'), before);
});

describe('a narrowed role', () => {
  test('gets no event and no count of what it may not see', async (t) => {
    const reader = await follow(t, 'narrow_sys_operator');
    const all = await follow(t, 'sys_operator');
    await reader.until(named('resync'));
    const hidden = [await addJob('out-mail'), await addMessage('out.orders')];
    const dead = await addJob('out-mail', 'dead_letter');
    await change(sql`DELETE FROM jobs.job_queue WHERE job_id = ${hidden[0] ?? ''}`);
    await all.until(isMany('jobs'));
    const shown = await addJob('in-mail', 'dead_letter');
    await reader.until(changeOf('jobs', shown));
    await reader.until(needsAttention('jobs', 1));
    await all.until(needsAttention('jobs', 2));
    const text = JSON.stringify(reader.events);
    for (const id of [...hidden, dead]) assert.ok(!text.includes(id), text);
    assert.ok(!reader.events.some(isMany('jobs')), text);
  });

  test('of one slice hears nothing of the others', async (t) => {
    const worker = await follow(t, 'worker');
    const all = await follow(t, 'sys_admin');
    await worker.until(named('resync'));
    await all.until(named('resync'));
    const before = all.events.length;
    await addJob('in-mail');
    await all.until(changeOf('jobs'), before);
    await worker.until(named('beat'));
    assert.ok(!worker.events.some(({ event }) => event === 'change'), JSON.stringify(worker.events));
  });
});

test('nobody who is not known gets a stream', async () => {
  const reader = await readEvents(guarded.system.url);
  assert.equal(reader.status, 401);
  reader.close();
});

test('a principal has eight streams at most, and one that closes makes room for another', async (t) => {
  const token = bearer(await tokenOf('sys_auditor', 'greedy'));
  const open = async (): Promise<EventReader> => {
    const reader = await readEvents(guarded.system.url, token);
    t.after(() => reader.close());
    return reader;
  };
  const readers = await Promise.all(Array.from({ length: 8 }, open));
  assert.deepEqual(
    readers.map(({ status }) => status),
    readers.map(() => 200),
  );
  assert.equal((await open()).status, 429);
  await follow(t, 'sys_operator');
  const [first] = readers;
  first?.close();
  await first?.ended;
  let status = 0;
  for (let i = 0; i < 50 && status !== 200; i += 1) ({ status } = await open());
  assert.equal(status, 200);
});

test('a revoked key ends its stream, and no other', async (t) => {
  const admin = await guarded.as(['sys_admin']);
  const made = await admin.post<{ id: string; key: string }>('/api/v1/keys', {
    name: 'follower',
    role: 'sys_auditor',
  });
  const reader = await readEvents(guarded.system.url, bearer(made.body.key));
  t.after(() => reader.close());
  const other = await follow(t, 'sys_auditor');
  await reader.until(named('resync'));
  assert.equal((await admin.delete(`/api/v1/keys/${made.body.id}`)).status, 200);
  await reader.ended;
  await other.until(named('beat'), other.events.length);
});

test('a stream continues where it ended; one of another process begins again; a stopped server says bye', async (t) => {
  const replica = await guarded.startReplica();
  const first = await follow(t, 'sys_admin', {}, replica.url);
  const keeps = await follow(t, 'sys_admin', {}, replica.url);
  const { id } = await first.until(changeOf('jobs', await addJob('in-mail')));
  const last = id === '' ? (await first.until(named('beat'), first.events.length)).id : id;
  assert.match(last, /^[0-9a-f]{8}-\d+$/);
  first.close();
  const missed = await addJob('in-mail');
  await keeps.until(changeOf('jobs', missed));
  const again = await follow(t, 'sys_admin', { 'last-event-id': last }, replica.url);
  await again.until(changeOf('jobs', missed));
  assert.ok(!again.events.some(named('resync')));
  const elsewhere = await follow(t, 'sys_admin', { 'last-event-id': last });
  await elsewhere.until(named('resync'));
  await replica.stop();
  await again.until(named('bye'));
  await again.ended;
});

test('at most four events a second, and a redrive is told in its scope', async (t) => {
  const admin = createApiClient(guarded.system.url, bearer(await tokenOf('sys_admin')));
  await addMessage('out.redriven');
  const [reader, narrow] = [await follow(t, 'sys_admin'), await follow(t, 'narrow_sys_admin')];
  await Promise.all([reader.until(named('resync')), narrow.until(named('resync'))]);
  const planned = await admin.post<{ id: string }>('/api/v1/dlq/redrives', {
    kind: 'retry',
    filter: { topic: 'out.redriven' },
    reason: 'to be followed',
  });
  assert.equal(planned.status, 202, planned.text);
  const isTold = ({ event, data }: ServerEvent): boolean =>
    event === 'redrive' && JSON.stringify(data).includes(planned.body.id);
  await reader.until(isTold);
  const [before, beginMs] = [reader.events.length, performance.now()];
  for (let i = 0; i < 40; i += 1) await Promise.all([addJob('in-mail'), addMessage('in.orders')]);
  await reader.until(changeOf('jobs'), before);
  await reader.until(named('beat'), before);
  const perSecond = (reader.events.length - before) / ((performance.now() - beginMs) / 1000);
  assert.ok(perSecond <= 4.5, `${perSecond} events a second`);
  await narrow.until(changeOf('jobs'));
  assert.ok(!narrow.events.some(isTold));
});
