import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';

/** Found by a pattern, whatever is around it. */
export const canary = 'canary-7f3a';
/** The value of a protected field. */
export const password = 'hunter2';
const card = '4111 1111 1111 1111';

/** What no answer may have. */
export const secrets = /canary-7f3a|hunter2|4111 1111/;

const payload = (part: string): string =>
  JSON.stringify({ part, password, card, note: canary, deep: [{ password: { x: password } }] });
const text = (part: string): string => `${part} failed on {"password":"${password}"} with ${canary}`;

/** The configuration that protects all of it. */
export const protect = {
  rules: [
    { fields: ['**.password'], headers: ['authorization'], patterns: ['pan', 'canary'] },
    { topics: ['keyed.*'], key: true, action: 'hash' },
  ],
  patterns: { canary: 'canary-[a-z0-9]+' },
  hash_key: 'a key for the hashes of tests',
};

export const names = { topic: 'payments.v1', queue: 'mail', destination: 'broker', workflow: 'buy' } as const;

export type Hidden = Readonly<{
  message: string;
  fingerprint: string;
  job: string;
  order: string;
  /** Its idempotency key has nothing to hide. */
  plainKey: string;
  saga: string;
}>;

/** A secret in every place of every slice in which people or services put texts. */
export async function hideCanaries(db: Database): Promise<Hidden> {
  return {
    ...(await hideInMessage(db)),
    job: await hideInJob(db),
    ...(await hideInOrder(db)),
    saga: await hideInSaga(db),
  };
}

async function hideInMessage(db: Database): Promise<Pick<Hidden, 'message' | 'fingerprint'>> {
  const fingerprint = 'v2:0123456789abcdef0123456789abcdef';
  const headers = JSON.stringify([
    { key: 'authorization', value: password },
    { key: 'note', value: canary },
  ]);
  const value = payload('value');
  const [row] = await db.query<{ id: string }>(sql`
    INSERT INTO dlq.dlq_messages
      (original_topic, error_message, error_class, error_stack, source_topic, message_key, raw_value, payload, headers,
       fingerprint)
    VALUES (${names.topic}, ${text('error')}, ${`Failed.${canary}`}, ${text('stack')}, ${`${names.topic}.dlq`},
            ${Buffer.from(`key ${canary}`)}, ${Buffer.from(value)}, ${value}::jsonb, ${headers}::jsonb, ${fingerprint})
    RETURNING id`);
  assert.ok(row !== undefined);
  await db.query(sql`
    INSERT INTO dlq.message_history (message_id, event, actor, reason, retry_count, attempt_no, lease_epoch, detail)
    VALUES (${row.id}, 'publish_failed', 'somebody', ${text('reason')}, 1, 1, 0, ${text('detail')})`);
  return { message: row.id, fingerprint };
}

async function hideInJob(db: Database): Promise<string> {
  const [row] = await db.query<{ job_id: string }>(sql`
    INSERT INTO jobs.job_queue
      (queue, payload, status, retry_count, error_message, result, dedupe_key, progress, fingerprint, completed_at,
       lease_epoch)
    VALUES (${names.queue}, ${payload('payload')}::jsonb, 'dead_letter', 3, ${text('error')},
            ${payload('result')}::jsonb, ${`dedupe-${canary}`}, ${payload('progress')}::jsonb, 'v2:01',
            clock_timestamp(), nextval('platform.lease_epochs'))
    RETURNING job_id`);
  assert.ok(row !== undefined);
  await db.query(sql`
    INSERT INTO jobs.job_attempts (job_id, retry_count, status_to, error, error_class, stack, lease_epoch)
    VALUES (${row.job_id}, 1, 'failed', ${text('attempt')}, ${`Failed.${canary}`}, ${text('stack')}, 1)`);
  await db.query(sql`
    INSERT INTO jobs.job_actions (job_id, action, status_from, status_to, actor, reason)
    VALUES (${row.job_id}, 'requeue', 'dead_letter', 'pending', 'somebody', ${text('reason')})`);
  const circuit = {
    failures: 9,
    first_at_ms: 1,
    interval_ms: 1000,
    next_probe_at_ms: 1,
    opened_at_ms: 1,
    is_unreachable: true,
    job_ids: [],
    reason: text('circuit'),
  };
  await db.query(sql`
    INSERT INTO jobs.queues (queue, paused, paused_at, paused_by, paused_reason, circuit)
    VALUES (${names.queue}, true, now(), 'somebody', ${text('pause')}, ${JSON.stringify(circuit)}::jsonb)
    ON CONFLICT (queue) DO UPDATE
    SET paused = true, paused_at = now(), paused_by = 'somebody', paused_reason = excluded.paused_reason,
        circuit = excluded.circuit`);
  return row.job_id;
}

async function hideInOrder(db: Database): Promise<Pick<Hidden, 'order' | 'plainKey'>> {
  const insert = async (key: string): Promise<bigint> => {
    const [row] = await db.query<{ id: bigint }>(sql`
      INSERT INTO outbox.outbox_orders
        (idempotency_key, request_json, request_digest, status, next_attempt_at, last_error, destination, ordering_key,
         ordering_seq, trace_id, response, fingerprint)
      VALUES (${key}, ${payload('request')}::jsonb, ${`sha256:${'0'.repeat(64)}`}, 'dead', now(),
              ${`UNKNOWN: ${text('error')}`}, ${names.destination}, ${`lane-${canary}`}, 1, ${`trace-${canary}`},
              ${payload('response')}::jsonb, 'v2:02')
      RETURNING id`);
    assert.ok(row !== undefined);
    for (const [from, to] of [
      ['queued', 'sending'],
      ['sending', 'dead'],
    ])
      await db.query(sql`
        INSERT INTO outbox.outbox_audit
          (outbox_id, status_from, status_to, retry_count, last_error, idempotency_key, trace_id, broker_order_id, actor,
           reason)
        VALUES (${row.id}, ${from}, ${to}, 1, ${text('audit')}, ${key}, ${`trace-${canary}`}, ${`outside-${canary}`},
                'somebody', ${text('reason')})`);
    await db.query(sql`
      INSERT INTO outbox.idempo_ledger
        (idempotency_key, request_digest, outbox_id, http_status, response_payload, outside_id)
      VALUES (${key}, ${`sha256:${'0'.repeat(64)}`}, ${row.id}, 201, '{}', ${`outside-${canary}`})`);
    return row.id;
  };
  const order = await insert(`order-${canary}`);
  const plainKey = 'order-of-tests-1';
  await insert(plainKey);
  await db.query(sql`
    INSERT INTO outbox.destination_state (destination, opened_at, open_reason, probe_interval_ms, next_probe_at)
    VALUES (${names.destination}, now(), ${text('circuit')}, 1000, now() + interval '1 hour')
    ON CONFLICT (destination) DO UPDATE
    SET version = outbox.destination_state.version + 1, opened_at = now(), open_reason = excluded.open_reason,
        probe_interval_ms = 1000, next_probe_at = now() + interval '1 hour'`);
  return { order: String(order), plainKey };
}

async function hideInSaga(db: Database): Promise<string> {
  const id = randomUUID();
  await db.query(sql`
    INSERT INTO saga.saga_states
      (id, workflow_name, status, payload, correlation_id, initiated_by, error_message, abort_requested, abort_actor,
       abort_reason, abort_at, needs_attention, stuck_step, stuck_op, stuck_reason, fingerprint)
    VALUES (${id}, ${names.workflow}, 'RUNNING', ${payload('payload')}::jsonb, ${`correlation-${canary}`},
            ${`service-${canary}`}, ${text('error')}, 'cancel', 'somebody', ${text('abort')}, now(), true, 0, 'EXECUTE',
            ${text('stuck')}, 'v2:03')`);
  await db.query(sql`
    INSERT INTO saga.saga_step_logs
      (saga_id, step_index, step_name, action, status, request_payload, response_payload, error_message, completed_at,
       attempt, actor, reason)
    VALUES (${id}, 0, 'one', 'EXECUTE', 'FAILED', ${payload('input')}::jsonb, ${payload('answer')}::jsonb,
            ${text('step')}, now(), 1, 'somebody', ${text('reason')})`);
  await db.query(sql`
    INSERT INTO saga.service_circuits (service, is_open, reason, probe_at)
    VALUES ('stock', true, ${text('circuit')}, now() + interval '1 hour')`);
  return id;
}
