import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

type Entry = Readonly<{
  id: string;
  kind: string;
  title: string;
  where: Readonly<Record<string, unknown>>;
  count: number;
  trend: readonly number[] | null;
  badges: readonly string[];
  rank: Readonly<{ code: string }>;
  verb: Readonly<{ action: string; permission: string }>;
  link: string;
}>;
type Inbox = Readonly<{
  entries: readonly Entry[];
  more: number;
  counts: Readonly<{ open: number; by_slice: Readonly<Record<string, number>> }>;
}>;

let system: TestSystem;
before(async () => void (system = await startTestSystem()));
after(() => system?.drop());

async function makeMessages(topic: string, fingerprint: string, count: number): Promise<void> {
  const ids = Array.from({ length: count }, () => randomUUID());
  await system.db.query(sql`
    INSERT INTO dlq.dlq_messages (id, original_topic, error_message, fingerprint, consumer_group)
    SELECT id, ${topic}, 'TimeoutException: no answer', ${fingerprint}, 'billing'
    FROM unnest(${ids}::uuid[]) AS id`);
}

test('dead messages are one entry for each cause and topic', async () => {
  await makeMessages('orders.v1', 'v1:00000000000000a1', 12);
  await makeMessages('payments.v1', 'v1:00000000000000a1', 2);
  const { body, text, status } = await system.api.get<Inbox>('/api/v1/inbox');
  assert.equal(status, 200, text);
  assert.deepEqual(
    body.entries.map(({ kind, where, count }) => [kind, where['topic'], count]),
    [
      ['messages', 'orders.v1', 12],
      ['messages', 'payments.v1', 2],
    ],
  );
  const [first] = body.entries;
  assert.equal(first?.trend?.at(-1), 12);
  assert.deepEqual(first?.badges, ['new', 'growing']);
  assert.equal(first?.title, 'TimeoutException: no answer');
  assert.deepEqual(first?.where, {
    topic: 'orders.v1',
    fingerprint: 'v1:00000000000000a1',
    consumer_group: 'billing',
  });
  assert.deepEqual([body.counts.open, body.counts.by_slice['dlq'], body.more], [2, 2, 0]);
  const { body: again } = await system.api.get<Inbox>('/api/v1/inbox?limit=1&text=ORDERS');
  assert.deepEqual(
    again.entries.map(({ id }) => id),
    [first?.id],
  );
});

test('every slice gives its entries, the most dangerous first, with what to do and where', async () => {
  await makeDeadItems();
  const { body, text } = await system.api.get<Inbox>('/api/v1/inbox');
  assert.doesNotMatch(text, /"unavailable"/);
  const found = body.entries.map(({ kind, where, count, rank, verb }) => [
    kind,
    Object.values(where)[0],
    count,
    rank.code,
    verb.action,
  ]);
  assert.deepEqual(found.slice(0, 2), [
    ['in_doubt', 'bank', 1, 'effect_unknown', 'ask_status'],
    ['sagas', 'place-order', 1, 'undo_stuck', 'open'],
  ]);
  const expected = [
    ['messages', 'orders.v1', 12, 'growing', 'plan_redrive'],
    ['messages', 'payments.v1', 2, 'recent', 'plan_redrive'],
    ['unroutable', 'lost.dlq', 1, 'recent', 'route'],
    ['orders', 'broker', 2, 'recent', 'open'],
    ['held_key', 'broker', 2, 'recent', 'open'],
    ['circuit', 'broker', 1, 'old', 'check_target'],
    ['jobs', 'mails', 3, 'recent', 'requeue'],
    ['circuit', 'mails', 1, 'old', 'check_target'],
    ['circuit', 'payment', 1, 'old', 'check_target'],
    ['redrive', redriveId, 1, 'recent', 'review'],
    ['ingest', 'orders.dlq', 1, 'recent', 'check_source'],
    ['accounting', 'orders.dlq', 4, 'recent', 'check_source'],
  ];
  assert.deepEqual(found.slice(2).toSorted(byText), expected.toSorted(byText));
  assert.deepEqual(body.counts.by_slice, { dlq: 4, outbox: 4, jobs: 2, saga: 2, system: 2 });
});

const byText = (one: readonly unknown[], other: readonly unknown[]): number =>
  JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;

const redriveId = '01a1dfae-c3a5-7000-8007-f35eedc32390';

/** One of each kind; what works on items is not running. */
async function makeDeadItems(): Promise<void> {
  const { db } = system;
  await db.query(sql`
    INSERT INTO dlq.dlq_messages (id, original_topic, error_message, fingerprint, unroutable)
    VALUES (gen_random_uuid(), 'lost.dlq', 'no topic', 'v1:00000000000000a2', true)`);
  await db.query(sql`
    INSERT INTO outbox.outbox_orders
      (idempotency_key, request_json, request_digest, status, next_attempt_at, last_error, destination, ordering_key,
       ordering_seq, in_doubt, fingerprint)
    SELECT 'key-' || n, '{}', 'd', status, clock_timestamp() + interval '1 hour', error, destination, lane,
           CASE WHEN lane IS NOT NULL THEN n END, in_doubt, fingerprint
    FROM (VALUES
      (1, 'dead', 'REFUSED: 400', 'broker', NULL, false, 'v1:00000000000000b1'),
      (2, 'dead', 'REFUSED: 400', 'broker', NULL, false, 'v1:00000000000000b1'),
      (3, 'dead', 'REFUSED: 400', 'broker', 'C-17', false, 'v1:00000000000000b1'),
      (4, 'queued', NULL, 'broker', 'C-17', false, NULL),
      (5, 'queued', NULL, 'broker', 'C-17', false, NULL),
      (6, 'dead', 'UNKNOWN: no answer', 'bank', NULL, true, 'v1:00000000000000b2')
    ) AS o (n, status, error, destination, lane, in_doubt, fingerprint)`);
  await db.query(sql`
    INSERT INTO outbox.destination_state (destination, opened_at, open_reason, probe_interval_ms, next_probe_at)
    VALUES ('broker', clock_timestamp() - interval '2 hours', 'connection refused', 1000, clock_timestamp())`);
  await db.query(sql`
    INSERT INTO jobs.job_queue (queue, payload, status, error_message, completed_at, fingerprint)
    SELECT 'mails', '{}', 'dead_letter', 'it broke', clock_timestamp(), 'v1:00000000000000c1' FROM generate_series(1, 3)`);
  await db.query(sql`
    INSERT INTO jobs.queues (queue, circuit)
    VALUES ('mails', jsonb_build_object('reason', 'refused', 'opened_at_ms', extract(epoch FROM now()) * 1000 - 7200000))
    ON CONFLICT (queue) DO UPDATE SET circuit = EXCLUDED.circuit`);
  await db.query(sql`
    INSERT INTO saga.workflow_definitions (hash, name, definition)
    VALUES ('h1', 'place-order', '{"steps": [{"name": "reserve"}, {"name": "charge"}]}')`);
  await db.query(sql`
    INSERT INTO saga.saga_states
      (workflow_name, status, definition_hash, needs_attention, stuck_step, stuck_op, stuck_reason, compensation)
    VALUES ('place-order', 'COMPENSATING', 'h1', true, 1, 'COMPENSATE', 'used up 10 of 10', 'stuck')`);
  await db.query(sql`
    INSERT INTO saga.service_circuits (service, since, reason, probe_at)
    VALUES ('payment', clock_timestamp() - interval '2 hours', 'refused', clock_timestamp() + interval '1 day')`);
  await db.query(sql`
    INSERT INTO dlq.redrives (id, state, state_reason, filter, options, actor, reason, topics)
    VALUES (${redriveId}, 'stopped', '9 of 25 came back', '{}', '{}', 'ada', 'a test', '{orders.v1}')`);
  await db.query(sql`
    INSERT INTO dlq.source_partitions
      (cluster_id, topic, topic_id, partition, first_offset, next_offset, high_offset, stored, stopped, stored_at)
    VALUES ('c', 'orders.dlq', gen_random_uuid(), 0, 0, 10, 10, 6, true, clock_timestamp())`);
}

const as = (actor: string) => ({ 'x-actor': actor });
type Changed = Entry &
  Readonly<{
    state: string;
    owner: Readonly<{ subject: string; name: string }> | null;
    snooze: Readonly<{ count: number; by: string }> | null;
    done: Readonly<{ by: string; reason: string }> | null;
    notes: number;
  }>;

async function entryOf(topic: string): Promise<string> {
  const { body } = await system.api.get<Inbox>('/api/v1/inbox?kind=messages');
  const found = body.entries.find(({ where }) => where['topic'] === topic);
  assert.ok(found, topic);
  return `/api/v1/inbox/${found.id}`;
}

const listed = async (query: string): Promise<readonly Changed[]> =>
  (await system.api.get<{ entries: readonly Changed[] }>(`/api/v1/inbox?${query}`)).body.entries;

const auditOf = async (path: string): Promise<readonly string[]> => {
  const rows = await system.db.query<{ change: string }>(sql`
    SELECT detail ->> 'change' AS change FROM audit.events
    WHERE resource = ${path.replace('/api/v1/', 'console/')} ORDER BY seq`);
  return rows.map(({ change }) => change);
};

test('of two people who take an entry one gets it, and the other sees who has it', async () => {
  await makeMessages('taken.v1', 'v1:00000000000000d1', 1);
  const path = await entryOf('taken.v1');
  const answers = await Promise.all(
    ['ada', 'bob'].map((name) => system.api.post<Changed>(`${path}/assign`, { owner: 'me' }, as(name))),
  );
  assert.deepEqual(answers.map(({ status }) => String(status)).toSorted(), ['200', '409']);
  const winner = answers.find(({ status }) => status === 200)?.body.owner?.subject;
  const { body } = answers.find(({ status }) => status === 409) as unknown as {
    body: { error: { code: string }; current: Changed };
  };
  assert.deepEqual([body.error.code, body.current.owner?.subject], ['SYS_CONSOLE_CONFLICT', winner]);
  const again = await system.api.post<Changed>(`${path}/assign`, { owner: 'me' }, as(winner ?? ''));
  assert.equal(again.status, 200);
  assert.deepEqual(await auditOf(path), ['assign']);
  const taken = await system.api.post<Changed>(`${path}/assign`, { owner: 'me', take_over: true }, as('eve'));
  assert.deepEqual(taken.body.owner, { subject: 'eve', name: 'eve' });
  assert.deepEqual(
    (await listed('assignee=eve')).map(({ where }) => where['topic']),
    ['taken.v1'],
  );
  const open = new Set((await listed('assignee=none')).map(({ where }) => where['topic']));
  assert.ok(open.has('orders.v1') && !open.has('taken.v1'));
});

test('a snoozed entry comes back when it grows', async () => {
  await makeMessages('snoozed.v1', 'v1:00000000000000d2', 2);
  const path = await entryOf('snoozed.v1');
  const { body } = await system.api.post<Changed>(`${path}/snooze`, { grows_by: 1 }, as('ada'));
  assert.deepEqual([body.state, body.snooze?.count, body.snooze?.by], ['snoozed', 3, 'ada']);
  await makeMessages('snoozed.v1', 'v1:00000000000000d2', 1);
  assert.equal((await listed('state=snoozed')).length, 1);
  await makeMessages('snoozed.v1', 'v1:00000000000000d2', 1);
  assert.equal((await listed('state=snoozed')).length, 0);
  assert.ok((await listed('text=snoozed.v1')).length > 0);
  const off = await system.api.post<Changed>(`${path}/snooze`, { off: true }, as('ada'));
  assert.deepEqual([off.body.state, off.body.snooze], ['open', null]);
  assert.deepEqual(await auditOf(path), ['snooze', 'wake']);
});

test('what is done by hand needs a reason, and comes back when items arrive after it', async () => {
  await makeMessages('done.v1', 'v1:00000000000000d3', 2);
  const path = await entryOf('done.v1');
  assert.equal((await system.api.post(`${path}/done`, {}, as('ada'))).status, 400);
  const [one, other] = await Promise.all(
    ['ada', 'bob'].map((name) =>
      system.api.post<Changed>(`${path}/done`, { reason: `fixed by ${name}` }, as(name)),
    ),
  );
  assert.deepEqual([`${one?.status}`, `${other?.status}`].toSorted(), ['200', '409']);
  const done = (await listed('state=done')).find(({ where }) => where['topic'] === 'done.v1');
  assert.match(done?.done?.reason ?? '', /^fixed by (ada|bob)$/);
  const { body: conflict } = await system.api.post<{ error: { code: string } }>(
    `${path}/snooze`,
    {},
    as('ada'),
  );
  assert.equal(conflict.error.code, 'SYS_CONSOLE_CONFLICT');
  assert.deepEqual(await auditOf(path), ['done']);
  await makeMessages('done.v1', 'v1:00000000000000d3', 1);
  const back = (await listed('text=done.v1'))[0];
  assert.deepEqual([back?.state, back?.badges.includes('back')], ['open', true]);
});

test('notes are bounded, repeatable by id, and deleted by their author alone', async () => {
  await makeMessages('noted.v1', 'v1:00000000000000d4', 4);
  const path = await entryOf('noted.v1');
  const note = { note_id: randomUUID(), text: 'the provider knows' };
  for (let n = 0; n < 2; n += 1)
    assert.equal((await system.api.post(`${path}/notes`, note, as('ada'))).status, 200);
  const other = await system.api.post(`${path}/notes`, { ...note, text: 'another' }, as('ada'));
  assert.equal(other.status, 409);
  const { body } = await system.api.get<{
    notes: number;
    notes_list: readonly { author: string; text: string }[];
    samples: readonly { link: string }[];
  }>(path);
  assert.deepEqual(
    [body.notes, body.notes_list.map(({ author, text }) => [author, text]), body.samples.length],
    [1, [['ada', 'the provider knows']], 3],
  );
  assert.match(body.samples[0]?.link ?? '', /^\/dlq\/messages\/[0-9a-f-]{36}$/);
  const long = await system.api.post(`${path}/notes`, { text: 'x'.repeat(2001) }, as('ada'));
  assert.equal(long.status, 400);
  await system.db.query(sql`
    INSERT INTO console.inbox_notes (entry_id, author, author_name, text)
    SELECT ${path.replace('/api/v1/inbox/', '')}, 'x', 'x', 'y' FROM generate_series(1, 99)`);
  assert.equal((await system.api.post(`${path}/notes`, { text: 'one more' }, as('ada'))).status, 409);
  assert.equal((await system.api.delete(`${path}/notes/${note.note_id}`, as('bob'))).status, 403);
  assert.equal((await system.api.delete(`${path}/notes/${note.note_id}`, as('ada'))).status, 200);
  assert.equal((await system.api.delete(`${path}/notes/${note.note_id}`, as('ada'))).status, 404);
  assert.deepEqual(await auditOf(path), ['note', 'delete_note']);
});

test('an entry that does not exist is not found, and ids that are none are refused', async () => {
  const unknown = `/api/v1/inbox/messages.${'x'.repeat(32)}`;
  assert.equal((await system.api.get(unknown)).status, 404);
  assert.equal((await system.api.post(`${unknown}/done`, { reason: 'x' })).status, 404);
  assert.equal((await system.api.get('/api/v1/inbox/messages.x')).status, 400);
});

test('views are their own person’s until they are shared, and lead nowhere else', async () => {
  type View = Readonly<{ id: string; name: string; url: string; shared: boolean; owner: string }>;
  const view = { name: 'dead payments', url: '/dlq/messages?q=topic%3Apayments.v1' };
  const first = await system.api.post<View>('/api/v1/views', view, as('ada'));
  assert.equal(first.status, 200, first.text);
  const again = await system.api.post<View>('/api/v1/views', view, as('ada'));
  assert.equal(again.body.id, first.body.id);
  const taken = await system.api.post('/api/v1/views', { ...view, url: '/inbox' }, as('ada'));
  assert.equal(taken.status, 409);
  const evil = await system.api.post('/api/v1/views', { name: 'x', url: '//evil.example/inbox' }, as('ada'));
  assert.equal(evil.status, 400);
  const seenBy = async (name: string): Promise<readonly string[]> =>
    (await system.api.get<{ views: readonly View[] }>('/api/v1/views', as(name))).body.views.map(
      (one) => one.name,
    );
  assert.deepEqual([await seenBy('ada'), await seenBy('bob')], [['dead payments'], []]);
  const path = `/api/v1/views/${first.body.id}`;
  assert.equal((await system.api.delete(path, as('bob'))).status, 404);
  const shared = await system.api.post<View>(
    '/api/v1/views',
    { name: 'mine', url: '/inbox', shared: true },
    as('ada'),
  );
  assert.deepEqual(await seenBy('bob'), ['mine']);
  assert.equal((await system.api.delete(`/api/v1/views/${shared.body.id}`, as('bob'))).status, 403);
  assert.equal((await system.api.delete(path, as('ada'))).status, 200);
  assert.equal((await system.api.delete(path, as('ada'))).status, 404);
  const acts = await system.db.query<{ action: string }>(sql`
    SELECT action FROM audit.events WHERE resource = ${`console/views/${first.body.id}`} ORDER BY seq`);
  assert.deepEqual(
    acts.map(({ action }) => action),
    ['console:views:keep', 'console:views:change'],
  );
});

test('an entry whose items are gone is done by itself, says who decided, and comes back', async () => {
  const cause = 'v1:00000000000000d5';
  await makeMessages('gone.v1', cause, 1);
  await makeMessages('kept.v1', cause, 1);
  const path = await entryOf('gone.v1');
  const id = path.replace('/api/v1/inbox/', '');
  await system.api.post(`${path}/snooze`, { grows_by: 10 }, as('bob'));
  // Another process, which notes what there is, on the same database.
  const workers = await startTestSystem({ database: system.database, env: { ROLES: 'workers' } });
  try {
    await eventually(async () => {
      const rows = await system.db.query(sql`SELECT 1 FROM console.inbox_entries`);
      assert.ok(rows.length > 8);
    });
    const [message] = await system.db.query<{ id: string }>(
      sql`SELECT id FROM dlq.dlq_messages WHERE original_topic = 'gone.v1'`,
    );
    const deleted = await system.api.delete(`/api/v1/dlq/messages/${message?.id ?? ''}`, as('ada'));
    assert.equal(deleted.status, 200, deleted.text);
    await eventually(
      async () => {
        const done = (await listed('state=done')).find((one) => one.id === id);
        assert.deepEqual(
          [done?.count, done?.done?.by, (done?.done as { action?: string } | undefined)?.action],
          [0, 'ada', 'dlq:messages:delete'],
        );
      },
      { withinMs: 60_000 },
    );
    const { body: gone } = await system.api.get<Changed>(path);
    assert.equal(gone.state, 'done');
    assert.equal((await system.api.post(`${path}/done`, { reason: 'x' }, as('ada'))).status, 409);
    assert.ok((await listed('text=kept.v1')).length > 0);
    await makeMessages('gone.v1', cause, 1);
    const [back] = await listed('text=gone.v1');
    assert.deepEqual([back?.state, back?.badges.includes('back')], ['open', true]);
  } finally {
    await workers.stop();
  }
});
