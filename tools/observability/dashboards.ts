import { dashboard, type Dashboard } from './grafana.ts';
import { graph, row, stat, table, type Panel } from './panels.ts';
import { age, max, orZero, pick, q, quantiles, rate } from './queries.ts';
import { dlq, jobs, outbox, saga } from './slice-dashboards.ts';
import { ratio, slos } from './slos.ts';

const job = 'job="redrive"';

/** What is left of the budget of the last three days, the longest window that is recorded. */
const budgets: readonly Panel[] = slos.map((slo) =>
  graph(
    slo.title,
    (['1h', '6h', '3d'] as const).map((window) =>
      q(`sum(${pick(ratio(slo, window))}) / ${Number((1 - slo.objective).toFixed(6))}`, `last ${window}`),
    ),
    {
      unit: 'short',
      width: 8,
      redFrom: 1,
      alert: slo.alert,
      description:
        'Burn rate: 1 uses the error budget up exactly at the end of its 30 days; 14.4 in two days.',
    },
  ),
);

const overview = dashboard('redrive-overview', 'Redrive / Overview', [
  row('What needs attention'),
  stat('Firing alerts', orZero('count(ALERTS{service="redrive",alertstate="firing"})'), { redFrom: 1 }),
  stat('Dead letters DEAD', orZero(`sum(${max('dlq_messages', 'topic', 'status="DEAD"')})`), {
    redFrom: 1,
    alert: 'DlqDeadMessages',
  }),
  stat('Dead orders', orZero(`sum(${max('outbox_orders', 'destination', 'status="dead"')})`), {
    redFrom: 1,
    alert: 'OutboxDeadOrders',
  }),
  stat('Dead jobs', orZero(`sum(${max('jobs_depth', 'queue', 'status="dead_letter"')})`), {
    redFrom: 1,
    alert: 'JobsDeadLetters',
  }),
  stat('Sagas', orZero(max('saga_needs_attention')), { redFrom: 1, alert: 'SagaNeedsAttention' }),
  stat('Open circuits', orZero(`sum(${max('outbox_circuit_open', 'destination')})`), {
    redFrom: 1,
    alert: 'OutboxCircuitOpen',
  }),
  row('Oldest waiting'),
  stat('Dead letter PENDING', age('dlq_oldest_pending_timestamp_seconds'), {
    unit: 's',
    width: 6,
    redFrom: 86_400,
    alert: 'DlqPendingOld',
  }),
  stat('Order', age('outbox_oldest_waiting_timestamp_seconds'), {
    unit: 's',
    width: 6,
    redFrom: 60,
    alert: 'OutboxLagHigh',
  }),
  stat('Due job', age('jobs_oldest_due_timestamp_seconds'), {
    unit: 's',
    width: 6,
    redFrom: 300,
    alert: 'JobsQueueLag',
  }),
  stat('Saga step in doubt', age('saga_in_doubt_since_timestamp_seconds'), {
    unit: 's',
    width: 6,
    redFrom: 3600,
    alert: 'SagaInDoubt',
  }),
  row('Traffic'),
  graph(
    'Items per second',
    [
      q(rate('dlq_ingested_total'), 'dead letters stored'),
      q(rate('dlq_retries_total', '', 'outcome="published"'), 'dead letters retried'),
      q(rate('outbox_send_total'), 'orders sent'),
      q(rate('jobs_finished_total'), 'jobs run'),
      q(rate('saga_finished_total'), 'sagas ended'),
    ],
    { unit: 'ops' },
  ),
  graph('API requests', [q(rate('http_requests_total', 'status', job), '{{status}}')], {
    unit: 'reqps',
    isStacked: true,
    alert: 'ApiErrorBudgetBurn',
  }),
  row('Error budgets'),
  ...budgets,
  row('Replicas and versions'),
  table('Versions', `count by (version, node) (${pick('redrive_build_info')})`, {}),
  table(
    'Loops by the time since their last success',
    `sort_desc(time() - ${pick('redrive_loop_last_success_timestamp_seconds')})`,
    { unit: 's', alert: 'LoopStalled' },
  ),
]);

const platform = dashboard('redrive-platform', 'Redrive / PostgreSQL and Kafka', [
  row('PostgreSQL'),
  graph('Statements, with the wait for a connection', quantiles('db_query_duration_seconds', job), {
    unit: 's',
  }),
  graph(
    'Connections',
    [
      q(`sum by (instance, state) (${pick('db_pool_connections', job)})`, '{{instance}} {{state}}'),
      q(`max(${pick('db_pool_max_connections', job)})`, 'limit of each'),
    ],
    {},
  ),
  graph(
    'Waiting for a connection',
    [q(`sum by (instance) (${pick('db_pool_waiting', job)})`, '{{instance}}')],
    { redFrom: 1, alert: 'DbPoolSaturated' },
  ),
  graph(
    'Duration of claims, p95',
    [
      q(
        `histogram_quantile(0.95, ${rate('redrive_claim_duration_seconds_bucket', 'le, slice')})`,
        '{{slice}}',
      ),
    ],
    { unit: 's' },
  ),
  graph('Expired leases', [q(rate('redrive_leases_reaped_total', 'slice'), '{{slice}}')], {
    unit: 'ops',
    alert: 'LeasesReaped',
  }),
  graph('Stale writes', [q(rate('redrive_stale_writes_total', 'slice'), '{{slice}}')], {
    unit: 'ops',
    alert: 'StaleWrites',
  }),
  stat('Password expires in', `min(${pick('db_credential_expiry_timestamp_seconds', job)}) - time()`, {
    unit: 's',
    width: 8,
    alert: 'DbCredentialExpiring',
  }),
  stat(
    'Refused logins, 24 h',
    orZero(`sum(increase(${pick('secrets_reload_total', 'outcome!="reloaded"')}[1d]))`),
    { width: 8, redFrom: 1 },
  ),
  table('Schema', `max by (schema) (${pick('schema_version')})`, { width: 8 }),
  row('Kafka'),
  graph('Records read', [q(rate('kafka_messages_consumed_total', 'topic', job), '{{topic}}')], {
    unit: 'ops',
  }),
  graph('Records written', [q(rate('kafka_messages_produced_total', 'topic', job), '{{topic}}')], {
    unit: 'ops',
  }),
  row('Processes'),
  graph('Memory', [q(pick('process_resident_memory_bytes', job), '{{instance}}')], { unit: 'bytes' }),
  graph(
    'CPU',
    [
      q(
        `sum by (instance) (rate(${pick('process_cpu_seconds_total', job)}[$__rate_interval]))`,
        '{{instance}}',
      ),
    ],
    { unit: 'percentunit' },
  ),
  graph('Event loop delay, p99', [q(pick('nodejs_eventloop_lag_p99_seconds', job), '{{instance}}')], {
    unit: 's',
    redFrom: 0.5,
  }),
  graph(
    'Notifications',
    [
      q(rate('notify_messages_total', 'notifier'), '{{notifier}}'),
      q(rate('notify_events_total', 'namespace'), 'events'),
    ],
    { unit: 'ops' },
  ),
]);

export const dashboards: readonly Dashboard[] = [overview, dlq, outbox, jobs, saga, platform];
