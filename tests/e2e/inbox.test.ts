import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
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
