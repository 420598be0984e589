import assert from 'node:assert/strict';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { planRedrive } from '../redrives.ts';
import { startGuardedConsole, type ConsoleSystem } from './console-system.ts';
import { startPrefixProxy, type PrefixProxy } from './start-prefix-proxy.ts';
import { storeFailures } from './store-failures.ts';
import { storeJobs } from './store-jobs.ts';

/** What somebody who writes messages might try; it must only ever be text. */
export const hostileText = `<img src=x onerror="document.title='owned'">{{7*7}}"'><script>document.title='owned'</script>\u202E`;

/** A text that nobody has thought of: without a place to break, and longer than any screen. */
const longText = `${'a-very-long-name-without-any-break'.repeat(12)}${hostileText}`;

/** A server below a path, with something in every list, all of it hostile and far too long. */
export type EveryPage = Readonly<{
  system: ConsoleSystem;
  proxy: PrefixProxy;
  /** Every page of dead letters, orders, jobs, sagas and the system, by what it is. */
  paths: Readonly<Record<string, string>>;
  drop(): Promise<void>;
}>;

export async function startEveryPage(): Promise<EveryPage> {
  const proxy = await startPrefixProxy('/ops/redrive');
  const system = await startGuardedConsole({
    kafka: 'local',
    more: {
      server: { public_url: proxy.url, allowed_hosts: ['127.0.0.1', '0.0.0.0'] },
      jobs: { cron: { nightly: { schedule: '0 3 * * *', queue: 'reports' } } },
      // Nobody listens there, and nobody runs them.
      services: { shop: { type: 'http', base_url: 'http://127.0.0.1:9' } },
      outbox: { destinations: { partner: { type: 'http', url: 'http://127.0.0.1:9' } } },
    },
  });
  proxy.serve(system.url);
  const drop = async (): Promise<void> => {
    await proxy.stop();
    await system.drop();
  };
  try {
    return { system, proxy, paths: await storeEverything(system), drop };
  } catch (error) {
    await drop();
    throw error;
  }
}

async function storeEverything(system: ConsoleSystem): Promise<Readonly<Record<string, string>>> {
  const message = await storeMessages(system);
  const group = await storeFailures(system.db, {
    name: 'hostile',
    count: 30,
    topic: longText.slice(0, 240),
    group: longText.slice(0, 200),
    errorClass: `com.acme.${longText}`,
    template: longText,
  });
  const [job = ''] = await storeJobs(system.db, {
    queue: 'mail',
    count: 30,
    status: 'dead_letter',
    error: longText,
    stack: `${longText}\n    at send (/app/${longText}.ts:1:1)`,
    payload: JSON.stringify({ [hostileText]: longText }),
  });
  const order = await storeOrder(system);
  const saga = await startSaga(system);
  const plan = { reason: hostileText, filter: { topic: longText.slice(0, 240) } };
  const redrive = await planRedrive(system.api, plan);
  const path = (start: string, id: string): string => `${start}/${encodeURIComponent(id)}`;
  return {
    groups: '/dlq/groups',
    group: path('/dlq/groups', group),
    messages: '/dlq/messages',
    peek: `/dlq/messages?peek=${message}`,
    error: path('/dlq/messages', message),
    payload: `${path('/dlq/messages', message)}?tab=payload`,
    headers: `${path('/dlq/messages', message)}?tab=headers`,
    history: `${path('/dlq/messages', message)}?tab=history`,
    edit: `${path('/dlq/messages', message)}/edit`,
    redrives: '/dlq/redrives',
    plan: '/dlq/redrives/new?q=status:PENDING',
    redrive: path('/dlq/redrives', redrive.id),
    orders: '/outbox/orders',
    order: path('/outbox/orders', order),
    destinations: '/outbox/destinations',
    ledger: '/outbox/ledger?key=nobody-has-this-key',
    jobs: '/jobs/list',
    'jobs by error': '/jobs/list?view=dead',
    job: path('/jobs/list', job),
    queues: '/jobs/queues',
    schedules: '/jobs/schedules',
    sagas: '/sagas',
    saga: path('/sagas', saga),
    workflows: '/sagas/workflows',
    workflow: '/sagas/workflows/buy',
    system: '/system',
  };
}

async function storeMessages({ db }: ConsoleSystem): Promise<string> {
  const value = JSON.stringify({ [hostileText]: longText });
  const headers = JSON.stringify([{ key: hostileText, value: longText }]);
  const [row] = await db.query<{ id: string }>(sql`
    INSERT INTO dlq.dlq_messages
      (original_topic, error_message, error_stack, source_topic, message_key, raw_value, payload, headers)
    VALUES (${longText.slice(0, 240)}, ${longText}, ${`${longText}\n\tat ${longText}(A.java:1)`}, 'orders.dlq',
            convert_to(${longText}, 'UTF8'), convert_to(${value}, 'UTF8'), ${value}::jsonb, ${headers}::jsonb)
    RETURNING id`);
  return row?.id ?? '';
}

async function storeOrder({ db }: ConsoleSystem): Promise<string> {
  const request = JSON.stringify({ [hostileText]: longText });
  const [row] = await db.query<{ id: bigint }>(sql`
    INSERT INTO outbox.outbox_orders
      (idempotency_key, request_json, request_digest, status, retry_count, next_attempt_at, last_error, destination,
       ordering_key, ordering_seq)
    VALUES (${'k'.repeat(64)}, ${request}::jsonb, ${`sha256:${'0'.repeat(64)}`}, 'dead', 1, now(), ${longText}, 'partner',
            ${longText.slice(0, 100)}, 1)
    RETURNING id`);
  return String(row?.id);
}

async function startSaga({ api }: ConsoleSystem): Promise<string> {
  const steps = [{ name: 'pay', service: 'shop', method: 'POST /pay', compensate: 'POST /refund' }];
  const yaml = JSON.stringify({ name: 'buy', steps });
  const { status, text } = await api.post('/api/v1/workflows', { workflow_yaml: yaml });
  assert.equal(status, 201, text);
  const body = {
    workflow_name: 'buy',
    payload: { [hostileText]: longText },
  };
  return (await api.post<{ saga_id: string }>('/api/v1/sagas', body)).body.saga_id;
}
