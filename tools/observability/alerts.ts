import { burnExpression, slos } from './slos.ts';

/** Two severities: `page` wakes somebody up, `ticket` is for the next working day. */
export type Alert = Readonly<{
  name: string;
  severity: 'page' | 'ticket';
  expr: string;
  for?: string;
  summary: string;
  description: string;
}>;

/** One replica exports these gauges; while another one takes over, both may. */
const max = (selector: string, by = ''): string => `max by (namespace${by}) (${selector})`;
const sum = (selector: string, by: string): string => `sum by (namespace${by}) (${selector})`;
const increase = (selector: string, window: string, by = ''): string =>
  `sum by (namespace${by}) (increase(${selector}[${window}]))`;

/**
 * By how much a counter has grown whose series begins with its first event: `increase` takes that for no growth. A series
 * that is new counts in full; not one that was only not scraped, so its process was, or has started since.
 */
const growth = (counter: string, minutes: number, by: string): string => {
  const window = `${minutes}m`;
  const wasScraped = `up{job="redrive"} offset ${window} == 1`;
  const hasStarted = `time() - process_start_time_seconds{job="redrive"} < ${minutes * 60}`;
  const isNew = `${counter} unless ${counter} offset ${window} and on (namespace, instance) (${wasScraped} or ${hasStarted})`;
  return sum(`(${isNew}) or increase(${counter}[${window}])`, by);
};

const budgets: readonly Alert[] = slos.flatMap((slo) =>
  (['page', 'ticket'] as const).map((severity) => ({
    name: slo.alert,
    severity,
    expr: burnExpression(slo, severity),
    summary: `The objective "${slo.title}" is missed`,
    description:
      severity === 'page'
        ? 'At this rate the error budget of 30 days is gone within two days (14.4 times too fast), or within five.'
        : 'The error budget of 30 days is used up at least as fast as it is granted, for a day or three.',
  })),
);

const process: readonly Alert[] = [
  {
    name: 'Down',
    severity: 'page',
    expr: 'absent(up{job="redrive"}) or sum by (namespace) (up{job="redrive"}) == 0',
    for: '2m',
    summary: 'No replica of Redrive answers',
    description: 'Prometheus scrapes no replica: nothing is ingested, delivered or run, and the API is down.',
  },
  {
    name: 'Down',
    severity: 'ticket',
    expr: 'up{job="redrive"} == 0',
    for: '15m',
    summary: 'The replica {{ $labels.instance }} does not answer',
    description: 'Other replicas do its work, with less room for another failure.',
  },
  {
    name: 'LoopStalled',
    severity: 'page',
    expr: 'time() - redrive_loop_last_success_timestamp_seconds{loop!~"retention|archive"} > 300',
    for: '1m',
    summary: 'The loop {{ $labels.slice }} {{ $labels.loop }} of {{ $labels.instance }} stands still',
    description: 'It has not finished a round without an error for {{ $value | humanizeDuration }}.',
  },
  {
    name: 'LoopStalled',
    severity: 'ticket',
    expr: 'time() - redrive_loop_last_success_timestamp_seconds{loop=~"retention|archive"} > 21600',
    summary: 'Expired rows of {{ $labels.slice }} are not deleted',
    description: 'The loop {{ $labels.loop }} has not succeeded for {{ $value | humanizeDuration }}.',
  },
  {
    name: 'DbPoolSaturated',
    severity: 'ticket',
    expr: 'min_over_time(db_pool_waiting{job="redrive"}[5m]) > 0',
    for: '5m',
    summary: 'All database connections of {{ $labels.instance }} are in use',
    description: '{{ $value }} statements or more have waited for a connection all the time.',
  },
  {
    name: 'DbCredentialExpiring',
    severity: 'page',
    expr: 'min by (namespace) (db_credential_expiry_timestamp_seconds{job="redrive"}) - time() < 3600',
    for: '5m',
    summary: 'The database password expires in {{ $value | humanizeDuration }}',
    description: 'After that no replica can open a connection.',
  },
  {
    name: 'StaleWrites',
    severity: 'ticket',
    expr: `sum by (namespace, slice) (rate(redrive_stale_writes_total[15m])) > 0`,
    for: '30m',
    summary: 'Workers of {{ $labels.slice }} keep losing their leases',
    description: 'They were taken over while they worked; their results are dropped.',
  },
  {
    name: 'LeasesReaped',
    severity: 'ticket',
    expr: `sum by (namespace, slice) (rate(redrive_leases_reaped_total[15m])) > 0`,
    for: '30m',
    summary: 'Attempts of {{ $labels.slice }} keep ending by an expired lease',
    description: 'Their workers crash, hang or lose the database.',
  },
];

const dlq: readonly Alert[] = [
  {
    name: 'DlqIngestLagging',
    severity: 'page',
    expr: `(sum by (namespace, topic) (${max('dlq_ingest_stable_lag', ', topic, partition')}) > 0 unless ${increase('dlq_ingested_total', '10m', ', topic')} > 0) or sum by (namespace, topic) (${max('dlq_ingest_lag', ', topic, partition')}) > 10000 or ${max('dlq_ingest_held_back_seconds', ', topic')} > 900`,
    for: '10m',
    summary: 'Dead letters of {{ $labels.topic }} are not read, or read too slowly',
    description:
      'Records wait and none were stored for 10 minutes, or more than 10 000 wait, or an open transaction has blocked reading for 15 minutes.',
  },
  {
    name: 'DlqAccountingMismatch',
    severity: 'page',
    expr: `${max('dlq_accounting_missing_messages')} > 0`,
    for: '1m',
    summary: 'Offsets of dead-letter topics are not accounted for',
    description:
      '{{ $value }} records were read, and no counter says what became of them. They may be missing.',
  },
  {
    name: 'DlqMessagesSurge',
    severity: 'ticket',
    expr: `${growth('dlq_ingested_total', 10, ', topic')} > 100 and ${growth('dlq_ingested_total', 10, ', topic')} > 10 * ${increase('dlq_ingested_total', '1d', ', topic')} / 144`,
    summary: '{{ $labels.topic }} gets ten times as many dead letters as usual',
    description: '{{ $value | humanize }} in 10 minutes: a consumer fails.',
  },
  {
    name: 'DlqPendingOld',
    severity: 'ticket',
    expr: 'time() - min by (namespace) (dlq_oldest_pending_timestamp_seconds) > 86400',
    for: '15m',
    summary: 'Dead letters wait for a decision',
    description: 'The oldest PENDING message has waited for {{ $value | humanizeDuration }}.',
  },
  {
    name: 'DlqDeadMessages',
    severity: 'ticket',
    expr: `sum by (namespace, topic) (${max('dlq_messages{status="DEAD"}', ', topic, status')}) > 0`,
    for: '15m',
    summary: '{{ $labels.topic }} has messages that need attention',
    description: '{{ $value }} messages are DEAD: their retries are used up, or an operator marked them.',
  },
  {
    name: 'DlqUnroutable',
    severity: 'ticket',
    expr: `${growth('dlq_unroutable_total', 15, ', topic')} > 0`,
    summary: 'Dead letters of {{ $labels.topic }} have no known original topic',
    description: 'They cannot be retried before a rule or an operator says where they belong.',
  },
  {
    name: 'DlqPublishFailing',
    severity: 'ticket',
    expr: `${increase('dlq_retries_total{outcome=~"failed|unknown"}', '10m')} > 0`,
    for: '10m',
    summary: 'Retried messages are not accepted by the broker',
    description: '{{ $value | humanize }} attempts in 10 minutes were refused or are in doubt.',
  },
  {
    name: 'ArchiveNotRunning',
    severity: 'ticket',
    expr: 'time() - max by (namespace) (dlq_archive_last_success_timestamp_seconds) > 172800',
    for: '5m',
    summary: 'Dead letters have not been archived for two days',
    description: 'The last success was {{ $value | humanizeDuration }} ago; the table grows.',
  },
];

const audit: readonly Alert[] = [
  {
    name: 'AuditSealStale',
    severity: 'ticket',
    expr: `time() - ${max('audit_last_seal_timestamp_seconds')} > 600`,
    for: '5m',
    summary: 'The audit log has not been sealed for more than ten minutes',
    description:
      'Events that are newer than {{ $value | humanizeDuration }} are not part of the chain: if they were changed or removed, nobody would notice.',
  },
  {
    name: 'AuthDenialsSurge',
    severity: 'ticket',
    expr: `${sum('rate(authz_denied_total[5m]) or rate(auth_attempts_total{outcome="refused"}[5m])', '')} > 1`,
    for: '5m',
    summary: 'Many requests are refused because of who sends them',
    description:
      '{{ $value | humanize }} requests per second have a wrong token or lack the permission: an attack, or a program with an expired token.',
  },
];

const outbox: readonly Alert[] = [
  {
    name: 'OutboxLagHigh',
    severity: 'page',
    expr: `${max('outbox_lag_seconds{quantile="0.95"}')} > 60`,
    for: '5m',
    summary: 'Orders wait too long',
    description: '5 % of the waiting orders are older than {{ $value | humanizeDuration }}.',
  },
  {
    name: 'OutboxDeadSurge',
    severity: 'page',
    expr: `${increase('outbox_send_total{outcome="dead"}', '10m')} > 10`,
    summary: 'Many orders die',
    description:
      '{{ $value | humanize }} orders died within 10 minutes: look at the last deployment or schema change.',
  },
  {
    name: 'OutboxDeadOrders',
    severity: 'ticket',
    expr: `sum by (namespace, destination) (${max('outbox_orders{status="dead",destination!~"_.*"}', ', destination, status')}) > 0`,
    for: '15m',
    summary: '{{ $labels.destination }} has orders that need attention',
    description: '{{ $value }} orders are dead. Each blocks the later orders of its ordering key.',
  },
  {
    name: 'OutboxUnknownOutcome',
    severity: 'ticket',
    expr: `${increase('outbox_unknown_outcomes_total', '15m')} > 0`,
    summary: 'It is unknown whether orders had their effect',
    description: '{{ $value | humanize }} requests got no answer within 15 minutes.',
  },
  {
    name: 'OutboxCircuitOpen',
    severity: 'ticket',
    expr: `${max('outbox_circuit_open', ', destination')} > 0`,
    for: '5m',
    summary: 'The circuit of {{ $labels.destination }} is open',
    description: 'The destination does not answer or refuses the credentials; its orders wait.',
  },
  {
    name: 'InternalOrdersDead',
    severity: 'ticket',
    expr: `${max('outbox_internal_dead')} > 0`,
    for: '5m',
    summary: 'Notifications or saga events were not delivered',
    description: '{{ $value }} orders of Redrive itself are dead.',
  },
];

const jobs: readonly Alert[] = [
  {
    name: 'JobsDeadLetters',
    severity: 'ticket',
    expr: `sum by (namespace, queue) (${max('jobs_depth{status="dead_letter"}', ', queue, status')}) > 0`,
    for: '5m',
    summary: 'The queue {{ $labels.queue }} has dead letters',
    description: '{{ $value }} jobs have used up their retries.',
  },
  {
    name: 'JobsQueueLag',
    severity: 'page',
    expr: `${max('jobs_lag_seconds', ', queue')} > 300`,
    for: '5m',
    summary: 'Jobs of {{ $labels.queue }} are not started',
    description: 'A job has been due for {{ $value | humanizeDuration }}.',
  },
];

const saga: readonly Alert[] = [
  {
    name: 'SagaCompensationStuck',
    severity: 'page',
    expr: `${max('saga_compensations_stuck')} > 0`,
    for: '1m',
    summary: 'Sagas are neither done nor undone',
    description: '{{ $value }} sagas are stuck while they are being undone.',
  },
  {
    name: 'SagaInDoubt',
    severity: 'ticket',
    expr: 'time() - min by (namespace) (saga_in_doubt_since_timestamp_seconds) > 3600',
    for: '5m',
    summary: 'The outcome of a saga step is unknown',
    description: 'It has been unknown for {{ $value | humanizeDuration }}.',
  },
  {
    name: 'SagaNeedsAttention',
    severity: 'ticket',
    expr: `${max('saga_needs_attention')} > 0`,
    for: '5m',
    summary: 'Sagas need attention',
    description: '{{ $value }} sagas cannot go on without an operator.',
  },
];

export const alerts: readonly Alert[] = [
  ...budgets,
  ...process,
  ...audit,
  ...dlq,
  ...outbox,
  ...jobs,
  ...saga,
];

export const alertNames: readonly string[] = [...new Set(alerts.map(({ name }) => name))];
