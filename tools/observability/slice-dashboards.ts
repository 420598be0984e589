import { dashboard } from './grafana.ts';
import { graph, row, stat } from './panels.ts';
import { age, max, orZero, pick, q, quantiles, rate } from './queries.ts';

export const dlq = dashboard('redrive-dlq', 'Redrive / Dead letters', [
  stat('PENDING', orZero(`sum(${max('dlq_messages', 'topic', 'status="PENDING"')})`), {}),
  stat('RETRYING', orZero(`sum(${max('dlq_messages', 'topic', 'status="RETRYING"')})`), {}),
  stat('DEAD', orZero(`sum(${max('dlq_messages', 'topic', 'status="DEAD"')})`), {
    redFrom: 1,
    alert: 'DlqDeadMessages',
  }),
  stat('Oldest PENDING', age('dlq_oldest_pending_timestamp_seconds'), {
    unit: 's',
    redFrom: 86_400,
    alert: 'DlqPendingOld',
  }),
  stat('Not accounted for', max('dlq_accounting_missing_messages'), {
    redFrom: 1,
    alert: 'DlqAccountingMismatch',
  }),
  stat('Last archive', `time() - ${max('dlq_archive_last_success_timestamp_seconds')}`, {
    unit: 's',
    redFrom: 172_800,
    alert: 'ArchiveNotRunning',
  }),
  row('Reading'),
  graph('Dead letters stored', [q(rate('dlq_ingested_total', 'topic'), '{{topic}}')], {
    unit: 'ops',
    alert: 'DlqMessagesSurge',
  }),
  graph('Lag', [q(`sum by (topic) (${max('dlq_ingest_lag', 'topic, partition')})`, '{{topic}}')], {
    redFrom: 10_000,
    alert: 'DlqIngestLagging',
    description: 'Offsets up to the high watermark that are not read yet.',
  }),
  graph('Time until stored', quantiles('dlq_ingest_delay_seconds'), {
    unit: 's',
    redFrom: 60,
    alert: 'DlqIngestBudgetBurn',
  }),
  graph('Blocked by an open transaction', [q(max('dlq_ingest_held_back_seconds', 'topic'), '{{topic}}')], {
    unit: 's',
    redFrom: 900,
    alert: 'DlqIngestLagging',
  }),
  graph('Without a known original topic', [q(rate('dlq_unroutable_total', 'topic'), '{{topic}}')], {
    unit: 'ops',
    alert: 'DlqUnroutable',
  }),
  graph('Messages that wait', [q(max('dlq_messages', 'topic', 'status="PENDING"'), '{{topic}}')], {
    isStacked: true,
  }),
  row('Retrying'),
  graph('Attempts', [q(rate('dlq_retries_total', 'outcome'), '{{outcome}}')], {
    unit: 'ops',
    isStacked: true,
    alert: 'DlqPublishFailing',
  }),
  graph('Archived', [q(rate('dlq_archived_total', 'namespace'), 'messages')], { unit: 'ops' }),
]);

export const outbox = dashboard('redrive-outbox', 'Redrive / Outbox', [
  stat('Waiting', orZero(`sum(${max('outbox_orders', 'destination', 'status="waiting"')})`), {
    description: 'Counted up to 1000 per destination.',
  }),
  stat('In flight', max('outbox_inflight'), {}),
  stat('p95 of the wait', max('outbox_lag_seconds', '', 'quantile="0.95"'), {
    unit: 's',
    redFrom: 60,
    alert: 'OutboxLagHigh',
  }),
  stat('Dead', orZero(`sum(${max('outbox_orders', 'destination', 'status="dead"')})`), {
    redFrom: 1,
    alert: 'OutboxDeadOrders',
  }),
  stat('Dead, our own', max('outbox_internal_dead'), { redFrom: 1, alert: 'InternalOrdersDead' }),
  stat('Open circuits', orZero(`sum(${max('outbox_circuit_open', 'destination')})`), {
    redFrom: 1,
    alert: 'OutboxCircuitOpen',
  }),
  graph('Attempts', [q(rate('outbox_send_total', 'outcome'), '{{outcome}}')], {
    unit: 'ops',
    isStacked: true,
    alert: 'OutboxDeadSurge',
  }),
  graph('Time until settled', quantiles('outbox_settle_seconds'), {
    unit: 's',
    redFrom: 60,
    alert: 'OutboxBudgetBurn',
  }),
  graph('Age of waiting orders', [q(max('outbox_lag_seconds', 'quantile'), 'quantile {{quantile}}')], {
    unit: 's',
    redFrom: 60,
    alert: 'OutboxLagHigh',
  }),
  graph('Unknown outcomes', [q(rate('outbox_unknown_outcomes_total', 'namespace'), 'attempts')], {
    unit: 'ops',
    alert: 'OutboxUnknownOutcome',
  }),
  graph(
    'Waiting by destination',
    [q(max('outbox_orders', 'destination', 'status="waiting"'), '{{destination}}')],
    { isStacked: true },
  ),
  graph('Throttled destinations', [q(max('outbox_throttle', 'destination'), '{{destination}}')], {
    unit: 'ops',
    description: 'Orders per second that are allowed; absent while a destination is not throttled.',
  }),
  graph('Claims', [q(rate('outbox_dequeue_total', 'result'), '{{result}}')], { unit: 'ops' }),
  graph(
    'Retries of settled orders',
    [
      q(
        `sum(rate(${pick('outbox_retry_count_sum')}[$__rate_interval])) / sum(rate(${pick('outbox_retry_count_count')}[$__rate_interval]))`,
        'average',
      ),
    ],
    {},
  ),
]);

export const jobs = dashboard('redrive-jobs', 'Redrive / Jobs', [
  stat('Pending', orZero(`sum(${max('jobs_depth', 'queue', 'status="pending"')})`), {}),
  stat('Waiting for a retry', orZero(`sum(${max('jobs_depth', 'queue', 'status="failed"')})`), {}),
  stat('Running', orZero(`sum(${max('jobs_depth', 'queue', 'status="running"')})`), {}),
  stat('Dead letters', orZero(`sum(${max('jobs_depth', 'queue', 'status="dead_letter"')})`), {
    redFrom: 1,
    alert: 'JobsDeadLetters',
  }),
  stat('Longest wait', max('jobs_lag_seconds'), { unit: 's', redFrom: 300, alert: 'JobsQueueLag' }),
  stat('Oldest due', age('jobs_oldest_due_timestamp_seconds'), {
    unit: 's',
    redFrom: 300,
    alert: 'JobsQueueLag',
  }),
  graph('Attempts', [q(rate('jobs_finished_total', 'outcome'), '{{outcome}}')], {
    unit: 'ops',
    isStacked: true,
  }),
  graph('Time until started', quantiles('jobs_start_delay_seconds'), {
    unit: 's',
    redFrom: 30,
    alert: 'JobsBudgetBurn',
  }),
  graph(
    'Waiting by queue',
    [q(`sum by (queue) (${max('jobs_depth', 'queue, status', 'status=~"pending|failed"')})`, '{{queue}}')],
    { isStacked: true },
  ),
  graph('Longest wait by queue', [q(max('jobs_lag_seconds', 'queue'), '{{queue}}')], {
    unit: 's',
    redFrom: 300,
    alert: 'JobsQueueLag',
  }),
  graph('Enqueued here', [q(rate('jobs_enqueued_total', 'queue'), '{{queue}}')], { unit: 'ops' }),
  graph('New dead letters', [q(rate('jobs_dead_letter_total', 'queue'), '{{queue}}')], {
    unit: 'ops',
    alert: 'JobsDeadLetters',
  }),
  graph('Duration of attempts', quantiles('jobs_duration_seconds'), { unit: 's' }),
]);

export const saga = dashboard('redrive-saga', 'Redrive / Sagas', [
  stat('Running', orZero(`sum(${max('saga_active', 'status', 'status=~"STARTED|RUNNING"')})`), { width: 6 }),
  stat('Compensating', max('saga_active', '', 'status="COMPENSATING"'), { width: 6 }),
  stat('Need attention', max('saga_needs_attention'), { width: 6, redFrom: 1, alert: 'SagaNeedsAttention' }),
  stat('Compensations stuck', max('saga_compensations_stuck'), {
    width: 6,
    redFrom: 1,
    alert: 'SagaCompensationStuck',
  }),
  graph('Started', [q(rate('saga_started_total', 'workflow'), '{{workflow}}')], { unit: 'ops' }),
  graph('Ended', [q(rate('saga_finished_total', 'status'), '{{status}}')], { unit: 'ops', isStacked: true }),
  graph(
    'Duration of attempts, p95',
    [
      q(
        `histogram_quantile(0.95, ${rate('saga_step_duration_seconds_bucket', 'le, workflow, step, action')})`,
        '{{workflow}} {{step}} {{action}}',
      ),
    ],
    { unit: 's' },
  ),
  graph(
    'In doubt for',
    [
      q(max('saga_in_doubt_seconds'), 'longest'),
      q(age('saga_in_doubt_since_timestamp_seconds'), 'since its start'),
    ],
    { unit: 's', redFrom: 3600, alert: 'SagaInDoubt' },
  ),
]);
