import assert from 'node:assert/strict';
import { sql, type Sql } from '../../../src/platform/postgres/sql.ts';
import type { TestDatabase } from '../../support/database.ts';
import { startTestSystem } from '../../support/start-system.ts';
import { storeMessage } from '../../support/stored-message.ts';

/** What a person does, over HTTP, and how the database shows whether it was done. */
export type Change = Readonly<{
  path: string;
  body: object;
  /** Of its row in the audit log. */
  action: string;
  /** The beginning of its resource there. */
  resource: string;
  /** Has a row once the change is stored. */
  stored: Sql;
}>;

const person = 'https://idp.example.com|grace';
const reason = 'tested';

export const settings = {
  ROLES: 'api',
  KAFKA_ENABLED: 'false',
  OUTBOX_DESTINATIONS: JSON.stringify({
    broker: { type: 'http', url: 'http://127.0.0.1:9', idempotency: 'enforced' },
  }),
  SERVICES: JSON.stringify({ shop: { type: 'http', base_url: 'http://127.0.0.1:9' } }),
} as const;

type Items = Readonly<Record<'message' | 'job' | 'order' | 'saga', string>>;

/** An act of every slice, and those about keys and sessions, each on an item of its own. */
export async function prepareChanges(database: TestDatabase): Promise<readonly Change[]> {
  const { db } = database;
  const system = await startTestSystem({ database, env: settings });
  const add = async (path: string, body: object, key = ''): Promise<Readonly<Record<string, unknown>>> => {
    const headers: Readonly<Record<string, string>> = key === '' ? {} : { 'idempotency-key': key };
    const answer = await system.api.post<Readonly<Record<string, unknown>>>(`/api/v1${path}`, body, headers);
    assert.ok(answer.status < 300, answer.text);
    return answer.body;
  };
  const newOrder = { destination: 'broker', idempotency_key: 'order-2026-1', request: {} };
  const step = { name: 'reserve', service: 'shop', method: 'POST /reserve', compensate: 'POST /release' };
  await add('/workflows', { workflow_yaml: JSON.stringify({ name: 'buy', steps: [step] }) });
  const items: Items = {
    message: await storeMessage(db),
    job: String((await add('/jobs', { queue: 'mail', payload: {} }))['job_id']),
    order: String((await add('/outbox/orders', newOrder, 'order-2026-1'))['id']),
    saga: String((await add('/sagas', { workflow_name: 'buy', payload: {} }))['saga_id']),
  };
  await system.stop();
  await db.query(sql`
    INSERT INTO access.sessions (id_sha256, subject, name, roles, expires_at)
    VALUES (sha256('a'), ${person}, 'grace', '{}', now() + interval '1 hour')`);
  return changesOf(items);
}

function changesOf({ message, job, order, saga }: Items): readonly Change[] {
  return [
    {
      path: `/dlq/messages/${message}/dead`,
      body: { reason },
      action: 'dlq:messages:mark-dead',
      resource: 'dlq/messages/',
      stored: sql`SELECT 1 FROM dlq.dlq_messages WHERE id = ${message} AND status = 'DEAD'`,
    },
    {
      path: '/dlq/redrives',
      body: { kind: 'retry', filter: {}, reason },
      action: 'dlq:redrives:plan',
      resource: 'dlq/redrives/',
      stored: sql`SELECT 1 FROM dlq.redrives`,
    },
    {
      path: `/jobs/${job}/cancel`,
      body: { reason },
      action: 'jobs:jobs:cancel',
      resource: 'jobs/jobs/',
      stored: sql`SELECT 1 FROM jobs.job_queue WHERE job_id = ${job} AND status <> 'pending'`,
    },
    {
      path: '/jobs/queues/mail/pause',
      body: { reason },
      action: 'jobs:queues:pause',
      resource: 'jobs/queues/',
      stored: sql`SELECT 1 FROM jobs.queues WHERE queue = 'mail' AND paused`,
    },
    {
      path: `/outbox/orders/${order}/cancel`,
      body: { reason },
      action: 'outbox:orders:cancel',
      resource: 'outbox/orders/',
      stored: sql`SELECT 1 FROM outbox.outbox_orders WHERE status = 'dead'`,
    },
    {
      path: `/sagas/${saga}/cancel`,
      body: { reason },
      action: 'saga:sagas:cancel',
      resource: 'saga/sagas/',
      stored: sql`SELECT 1 FROM saga.saga_states WHERE abort_requested IS NOT NULL`,
    },
    {
      path: '/keys',
      body: { name: 'nightly', role: 'worker' },
      action: 'access:keys:manage',
      resource: 'access/keys/',
      stored: sql`SELECT 1 FROM access.api_keys`,
    },
    {
      path: '/sessions/end',
      body: { subject: `user:${person}`, reason },
      action: 'access:sessions:manage',
      resource: 'access/sessions/',
      stored: sql`SELECT 1 WHERE NOT EXISTS (SELECT FROM access.sessions)`,
    },
  ];
}
