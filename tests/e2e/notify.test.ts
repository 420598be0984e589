import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test, type TestContext } from 'node:test';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { startOutboxSystem, type OutboxSystem, type OutboxSystemOptions } from '../support/outbox-system.ts';
import {
  startHookReceiver,
  startMailReceiver,
  type HookReceiver,
  type ReceivedHook,
} from '../support/receivers.ts';
import { startTestSystem } from '../support/start-system.ts';

/** Notifications through every channel: the whole system, real receivers. */

const secret = 'a secret that nobody else knows';
const refused = { act: 'status', status: 400, effect: false, body: 'no <such> symbol & more' } as const;

type Body = Readonly<{
  version: number;
  id: string;
  slice: string;
  kind: string;
  subject: string;
  count: number;
  is_summary: boolean;
  link: string;
  items: readonly Readonly<{ id: string; summary: string; link: string }>[];
}>;

async function openHook(t: TestContext, path?: string): Promise<HookReceiver> {
  const hook = await startHookReceiver(path);
  t.after(() => hook.goAway());
  return hook;
}

const webhookTo = ({ url }: HookReceiver): object => ({ type: 'webhook', url, secret, cooldown: '1h' });
const opsAt = (hook: HookReceiver): object => ({ ...webhookTo(hook), name: 'ops' });

type Readiness = Readonly<{
  status: string;
  checks: Readonly<Record<'notify' | 'outbox', Readonly<{ status: string; message?: string }>>>;
}>;

const readinessOf = async ({ system }: OutboxSystem): Promise<Readiness> =>
  (await system.api.get<Readiness>('/readyz')).body;

async function open(
  t: TestContext,
  notify: readonly object[],
  more: OutboxSystemOptions = {},
): Promise<OutboxSystem> {
  const outbox = await startOutboxSystem({
    destinations: () => ({ warehouse: {} }),
    ...more,
    env: { NOTIFY: JSON.stringify(notify), SERVER_PUBLIC_URL: 'https://redrive.example.com', ...more.env },
  });
  t.after(() => outbox.drop());
  return outbox;
}

async function orderDies(outbox: OutboxSystem, destination = 'broker'): Promise<bigint> {
  const id = await outbox.order({ destination, does: [refused] });
  await outbox.becomes(id, 'dead');
  return id;
}

/** The body, after a look at the signature, made as a receiver would. */
function verified({ headers, bytes }: ReceivedHook): Body {
  const [, t = '', v1 = ''] = /^t=(\d+),v1=([0-9a-f]+)$/.exec(String(headers['x-redrive-signature'])) ?? [];
  assert.equal(createHmac('sha256', secret).update(`${t}.`).update(bytes).digest('hex'), v1);
  assert.ok(Math.abs(Number(t) - Date.now() / 1000) < 300);
  const body = JSON.parse(bytes.toString('utf8')) as Body;
  assert.match(
    String(headers['idempotency-key']),
    new RegExp(`^_notify_(ops|webhook_[0-9a-f]{8}):${body.id}$`),
  );
  return body;
}

function receivedBy(hook: HookReceiver, count: number): Promise<readonly Body[]> {
  return eventually(() => {
    assert.equal(hook.received.length, count);
    return hook.received.map(verified);
  });
}

/** As if the cool-downs were over. */
async function passCooldown(db: Database): Promise<void> {
  await db.query(sql`UPDATE platform.notify_groups SET told_at = told_at - interval '2 hours'`);
}

async function internalOrders(db: Database): Promise<readonly Readonly<{ status: string; text: string }>[]> {
  return db.query(sql`
    SELECT status, row_to_json(o)::text AS text FROM outbox.outbox_orders o WHERE starts_with(destination, '_')`);
}

test('a dead order notifies a webhook, a Slack channel and a mailbox', async (t) => {
  const hook = await openHook(t);
  const slack = await openHook(t, '/services/T00000000/B00000000/slacksecretslacksecret');
  const mail = await startMailReceiver();
  t.after(() => mail.close());
  const server = { host: '127.0.0.1', port: mail.port, security: 'none' };
  const outbox = await open(t, [
    webhookTo(hook),
    { type: 'slack', url: slack.url },
    { type: 'email', ...server, from: 'Redrive <redrive@example.org>', to: ['ops@example.org'] },
  ]);
  const id = await orderDies(outbox);

  const [body] = await receivedBy(hook, 1);
  assert.deepEqual(
    [body?.version, body?.slice, body?.kind, body?.subject, body?.count, body?.is_summary],
    [1, 'outbox', 'dead', 'broker', 1, false],
  );
  assert.deepEqual(body?.items, [
    {
      id: String(id),
      summary: 'BAD_REQUEST: HTTP 400: no <such> symbol & more',
      link: `https://redrive.example.com/api/v1/outbox/orders/${id}`,
    },
  ]);

  await eventually(() => assert.equal(slack.received.length, 1));
  const { text } = JSON.parse(slack.received[0]?.bytes.toString('utf8') ?? '') as { text: string };
  assert.match(text, /^\*\[redrive dev\] 1 order to broker is dead\*\n/);
  assert.ok(text.includes(`- ${id}: BAD_REQUEST: HTTP 400: no &lt;such&gt; symbol &amp; more\n`));

  await eventually(() => assert.equal(mail.received.length, 1));
  assert.match(mail.received[0] ?? '', /^Subject: \[redrive dev\] 1 order to broker is dead\r$/m);
  assert.match(mail.received[0] ?? '', /^To: ops@example\.org\r$/m);

  const orders = await eventually(async () => {
    const found = await internalOrders(outbox.system.db);
    assert.deepEqual(
      found.map(({ status }) => status),
      ['sent', 'sent', 'sent'],
    );
    return found;
  });
  for (const order of orders) assert.doesNotMatch(order.text, /nobody else knows|slacksecret/);
});

test('dead items of every slice are notified, with a link', async (t) => {
  const hook = await openHook(t);
  const outbox = await open(t, [webhookTo(hook)]);
  const { db, api } = outbox.system;
  const order = await orderDies(outbox);
  const [lost] = await db.query<{ id: string }>(sql`
    INSERT INTO dlq.dlq_messages
      (original_topic, error_message, retry_count, max_retries, payload, status, lease_owner, lease_until)
    VALUES ('orders.v1', 'no such customer', 3, 3, '{}', 'RETRYING', 'somebody', now() - interval '1 minute')
    RETURNING id`);
  const [job] = await db.query<{ id: string }>(sql`
    INSERT INTO jobs.job_queue (queue, payload, status, retry_count, max_retries, lease_owner, lease_until)
    VALUES ('summarize', '{}', 'running', 2, 3, 'somebody', now() - interval '1 minute')
    RETURNING job_id AS id`);
  const bodies = await receivedBy(hook, 3);
  assert.deepEqual(
    bodies.map(({ slice, kind, subject, items }) => `${slice} ${kind} ${subject} ${items[0]?.id}`).toSorted(),
    [
      `dlq dead orders.v1 ${lost?.id}`,
      `jobs dead_letter summarize ${job?.id}`,
      `outbox dead broker ${order}`,
    ],
  );
  for (const link of bodies.flatMap((body) => [body.link, body.items[0]?.link ?? ''])) {
    const { pathname, search } = new URL(link);
    const answer = await api.get(`${pathname}${search}`);
    assert.equal(answer.status, 200, `${link}: ${answer.text}`);
  }
});

test('events during the cooldown are sent as one summary at its end, also after a restart', async (t) => {
  const hook = await openHook(t);
  const first = await open(t, [webhookTo(hook)]);
  await orderDies(first);
  await receivedBy(hook, 1);
  const ids = [await orderDies(first), await orderDies(first), await orderDies(first)];
  const { db, database } = first.system;
  await eventually(async () => {
    const [row] = await db.query<{ held: number }>(sql`
      SELECT held_count::int AS held FROM platform.notify_groups`);
    assert.equal(row?.held, 3);
  });
  assert.equal(hook.received.length, 1);
  await first.system.stop();
  await passCooldown(db);
  const second = await open(t, [webhookTo(hook)], { database, partner: first.partner });
  const [, summary] = await receivedBy(hook, 2);
  assert.deepEqual([summary?.count, summary?.is_summary], [3, true]);
  assert.deepEqual(
    summary?.items.map((item) => item.id),
    ids.map(String),
  );
  await second.system.stop();
});

test('a short cooldown ends by itself', async (t) => {
  const hook = await openHook(t);
  const outbox = await open(t, [{ ...webhookTo(hook), cooldown: '1s' }]);
  for (let i = 0; i < 10; i++) await orderDies(outbox);
  await eventually(() => {
    const counts = hook.received.map((each) => verified(each).count);
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      10,
    );
  });
});

test('a receiver that is down for a while misses nothing', async (t) => {
  const hook = await openHook(t);
  const outbox = await open(t, [opsAt(hook)]);
  await hook.goAway();
  await orderDies(outbox, 'broker');
  await orderDies(outbox, 'warehouse');
  await eventually(async () => {
    const rows = await outbox.system.db.query<{ retry_count: number }>(sql`
      SELECT retry_count FROM outbox.outbox_orders WHERE destination = '_notify_ops'`);
    assert.equal(rows.length, 2);
    // More than any other order would be tried.
    for (const row of rows) assert.ok(row.retry_count > 8);
  });
  await hook.comeBack();
  const bodies = await receivedBy(hook, 2);
  assert.deepEqual(bodies.map(({ subject }) => subject).toSorted(), ['broker', 'warehouse']);
  assert.equal(new Set(bodies.map(({ id }) => id)).size, 2);
});

test('a notification that is rejected notifies nobody: readiness and a gauge report it until somebody resolves it', async (t) => {
  const hook = await openHook(t);
  const outbox = await open(t, [opsAt(hook)]);
  const { api, db } = outbox.system;
  await eventually(async () => assert.equal((await readinessOf(outbox)).checks.notify.status, 'healthy'));
  hook.answerWith(400, 'go away');
  await orderDies(outbox);
  await eventually(async () => {
    const { status, checks } = await readinessOf(outbox);
    assert.equal(status, 'degraded');
    assert.match(checks.notify.message ?? '', /_notify_ops/);
  });
  await eventually(async () => assert.match((await api.get('/metrics')).text, /^outbox_internal_dead 1$/m));
  const events = await db.query(sql`SELECT 1 FROM platform.notify_events`);
  const orders = await internalOrders(db);
  assert.deepEqual([events.length, orders.map(({ status }) => status)], [0, ['dead']]);

  const [order] = await db.query<{ id: bigint }>(sql`
    SELECT id FROM outbox.outbox_orders WHERE destination = '_notify_ops'`);
  const skipped = await api.post(`/api/v1/outbox/orders/${order?.id}/skip`, { reason: 'seen' });
  assert.equal(skipped.status, 200, skipped.text);
  await eventually(async () => assert.equal((await readinessOf(outbox)).checks.notify.status, 'healthy'));
});

test('pending events go to their own notifier only, whoever is added to the list or replaced', async (t) => {
  const hook = await openHook(t);
  const other = await openHook(t, '/other');
  const first = await open(t, [webhookTo(hook)]);
  const { db, database } = first.system;
  await hook.goAway();
  await orderDies(first);
  await eventually(async () => assert.equal((await internalOrders(db)).length, 1));
  await orderDies(first);
  await eventually(async () => {
    const [row] = await db.query<{ held: number }>(sql`
      SELECT held_count::int AS held FROM platform.notify_groups`);
    assert.equal(row?.held, 1);
  });
  await first.system.stop();
  await passCooldown(db);

  const without = await open(t, [webhookTo(other)], { database, partner: first.partner });
  const { checks } = await eventually(async () => {
    const readiness = await readinessOf(without);
    assert.deepEqual(
      [readiness.checks.outbox.status, readiness.checks.notify.status],
      Array(2).fill('degraded'),
    );
    return readiness;
  });
  assert.match(checks.outbox.message ?? '', /unknown destinations: _notify_webhook_[0-9a-f]{8}$/);
  assert.match(checks.notify.message ?? '', /pending for unknown notifiers: _notify_webhook_[0-9a-f]{8}$/);
  await without.system.stop();

  await hook.comeBack();
  const both = await open(t, [webhookTo(other), webhookTo(hook)], { database, partner: first.partner });
  const bodies = await receivedBy(hook, 2);
  assert.equal(bodies.filter(({ is_summary }) => is_summary).length, 1);
  assert.equal(other.received.length, 0);
  await eventually(async () => assert.equal((await readinessOf(both)).checks.notify.status, 'healthy'));
  await both.system.stop();
});

test('two replicas send each message once', async (t) => {
  const hook = await openHook(t);
  const one = await open(t, [webhookTo(hook)]);
  const two = await open(t, [webhookTo(hook)], { database: one.system.database, partner: one.partner });
  for (const destination of ['broker', 'warehouse']) await orderDies(two, destination);
  await receivedBy(hook, 2);
  await one.system.stop();
  await passCooldown(two.system.db);
  await orderDies(two, 'broker');
  const bodies = await receivedBy(hook, 3);
  assert.deepEqual(bodies.map(({ subject }) => subject).toSorted(), ['broker', 'broker', 'warehouse']);
  await two.system.stop();
});

test('without notifiers events are kept for a notifier that is added later', async (t) => {
  const outbox = await open(t, []);
  await orderDies(outbox);
  const { db, database } = outbox.system;
  assert.equal((await db.query(sql`SELECT 1 FROM platform.notify_events`)).length, 1);
  await outbox.system.stop();
  const hook = await openHook(t);
  const later = await startTestSystem({ database, env: { NOTIFY: JSON.stringify([webhookTo(hook)]) } });
  t.after(() => later.drop());
  await receivedBy(hook, 1);
  await later.stop();
});
