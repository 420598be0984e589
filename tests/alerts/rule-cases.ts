import type { RuleCase } from './evaluate-rules.ts';

/**
 * For each alert that pages a case in which it fires, and one that is close to it in which it is silent; and tickets about
 * counters whose series begins with the first event.
 */

type Series = RuleCase['series'];

function page(alert: string, at: number, firing: Series, silent: Series): readonly RuleCase[] {
  return [
    { alert, severity: 'page', at, series: firing, fires: true },
    { alert, severity: 'page', at, series: silent, fires: false },
  ];
}

const requests = (status: number, values: string): Series => ({
  [`http_requests_total{job="redrive",route="/api/v1/jobs",status="${status}"}`]: values,
});

const api = 'job="redrive",route="/api/v1/jobs"';

/** Per minute 100 events, of which 20 and 1 are bad. */
const slow = { all: '0+100x120', tooMany: '0+80x120', few: '0+99.95x120' };

function histogram(alert: string, name: string, le: string, labels = ''): readonly RuleCase[] {
  const comma = labels === '' ? '' : ',';
  const events = (good: string): Series => ({
    [`${name}_count{${labels}}`]: slow.all,
    [`${name}_bucket{${labels}${comma}le="${le}"}`]: good,
  });
  return page(alert, 60, events(slow.tooMany), events(slow.few));
}

export const pageCases: readonly RuleCase[] = [
  ...page(
    'ApiErrorBudgetBurn',
    60,
    { ...requests(200, '0+100x120'), ...requests(503, '0+2x120') },
    { ...requests(200, '0+10000x120'), ...requests(503, '0+2x120') },
  ),
  // One failed request of a few is a large share, and wakes nobody up.
  {
    alert: 'ApiErrorBudgetBurn',
    severity: 'page',
    at: 60,
    series: { ...requests(200, '0+0.1x120'), ...requests(503, '0+0.1x120') },
    fires: false,
  },
  ...histogram('ApiSlow', 'http_request_duration_seconds', '0.2', api),
  ...histogram('DlqIngestBudgetBurn', 'dlq_ingest_delay_seconds', '60'),
  // As Prometheus 3 writes it.
  ...histogram('DlqIngestBudgetBurn', 'dlq_ingest_delay_seconds', '60.0'),
  ...histogram('OutboxBudgetBurn', 'outbox_settle_seconds', '60'),
  ...histogram('JobsBudgetBurn', 'jobs_start_delay_seconds', '30', 'queue="mail"'),
  ...page(
    'Down',
    10,
    { 'up{job="redrive",instance="a"}': '0x20', 'up{job="redrive",instance="b"}': '1x5 0x20' },
    { 'up{job="redrive",instance="a"}': '0x20', 'up{job="redrive",instance="b"}': '1x20' },
  ),
  { alert: 'Down', severity: 'page', at: 5, series: { 'up{job="other"}': '1x20' }, fires: true },
  ...page(
    'LoopStalled',
    10,
    { 'redrive_loop_last_success_timestamp_seconds{slice="jobs",loop="reaper",instance="a"}': '0x20' },
    {
      'redrive_loop_last_success_timestamp_seconds{slice="jobs",loop="reaper",instance="a"}': '0+60x20',
      'redrive_loop_last_success_timestamp_seconds{slice="jobs",loop="retention",instance="a"}': '0x20',
    },
  ),
  ...page(
    'DbCredentialExpiring',
    70,
    { 'db_credential_expiry_timestamp_seconds{job="redrive"}': '7200x80' },
    { 'db_credential_expiry_timestamp_seconds{job="redrive"}': '86400x80' },
  ),
  ...page(
    'DlqIngestLagging',
    30,
    {
      'dlq_ingest_stable_lag{topic="a.dlq",partition="0"}': '5x40',
      'dlq_ingested_total{topic="a.dlq"}': '70x40',
    },
    {
      'dlq_ingest_stable_lag{topic="a.dlq",partition="0"}': '5x40',
      'dlq_ingested_total{topic="a.dlq"}': '70+5x40',
      'dlq_ingest_lag{topic="a.dlq",partition="0"}': '9000x40',
      'dlq_ingest_held_back_seconds{topic="a.dlq",partition="0"}': '600x40',
    },
  ),
  ...page(
    'DlqAccountingMismatch',
    5,
    { dlq_accounting_missing_messages: '0 1x20' },
    { dlq_accounting_missing_messages: '0x20' },
  ),
  ...page(
    'OutboxLagHigh',
    10,
    { 'outbox_lag_seconds{quantile="0.95"}': '61x20' },
    { 'outbox_lag_seconds{quantile="0.95"}': '59x20', 'outbox_lag_seconds{quantile="0.99"}': '600x20' },
  ),
  ...page(
    'OutboxDeadSurge',
    10,
    { 'outbox_send_total{outcome="dead"}': '0+2x20' },
    { 'outbox_send_total{outcome="dead"}': '0+0.5x20', 'outbox_send_total{outcome="success"}': '0+100x20' },
  ),
  ...page(
    'JobsQueueLag',
    10,
    { 'jobs_lag_seconds{queue="mail"}': '301x20' },
    { 'jobs_lag_seconds{queue="mail"}': '299x20' },
  ),
  ...page(
    'SagaCompensationStuck',
    5,
    { saga_compensations_stuck: '1x20' },
    { saga_compensations_stuck: '0x20', saga_needs_attention: '3x20' },
  ),
];

function ticket(alert: string, at: number, series: Series, fires: boolean): RuleCase {
  return { alert, severity: 'ticket', at, series, fires };
}

const replica = 'job="redrive",instance="a"';
const up = (values: string, start: string): Series => ({
  [`up{${replica}}`]: values,
  [`process_start_time_seconds{${replica}}`]: start,
});
const scraped = up('1x60', '0x60');

/** The topic appears in minute 30 with all that was counted until then. */
function fromMinute30(alert: string, metric: string, count: number): readonly RuleCase[] {
  const series = { [`${metric}{topic="a.dlq",${replica}}`]: `_x30 ${count}x30` };
  const nothing = { [`${metric}{topic="a.dlq",${replica}}`]: '_x30 0x30' };
  return [
    ticket(alert, 31, { ...series, ...scraped }, true),
    ticket(alert, 50, { ...series, ...scraped }, false),
    ticket(alert, 31, { ...nothing, ...scraped }, false),
    // A process that has just started.
    ticket(alert, 31, { ...series, ...up('_x30 1x30', '_x30 1740x30') }, true),
    // Prometheus was away, or could not reach the process: what was counted may be old.
    ticket(alert, 31, { ...series, ...up('_x30 1x30', '_x30 0x30') }, false),
    ticket(alert, 31, { ...series, ...up('0x30 1x30', '_x30 0x30') }, false),
  ];
}

export const ticketCases: readonly RuleCase[] = [
  ...fromMinute30('DlqMessagesSurge', 'dlq_ingested_total', 150),
  ...fromMinute30('DlqUnroutable', 'dlq_unroutable_total', 1),
  ticket(
    'DlqMessagesSurge',
    1441,
    { [`dlq_ingested_total{topic="a.dlq",${replica}}`]: '0+20x1500', ...up('1x1500', '0x1500') },
    false,
  ),
  ticket(
    'DlqMessagesSurge',
    1445,
    { [`dlq_ingested_total{topic="a.dlq",${replica}}`]: '0+1x1440 1940x20', ...up('1x1500', '0x1500') },
    true,
  ),
  // One replica seals; the other one knows what it knew at its start.
  ticket(
    'AuditSealStale',
    40,
    { 'audit_last_seal_timestamp_seconds{instance="a"}': '0+60x20 1200x40' },
    true,
  ),
  ticket(
    'AuditSealStale',
    40,
    {
      'audit_last_seal_timestamp_seconds{instance="a"}': '0+60x60',
      'audit_last_seal_timestamp_seconds{instance="b"}': '0x60',
    },
    false,
  ),
  ticket('AuthDenialsSurge', 20, { [`auth_attempts_total{outcome="refused",${replica}}`]: '0+120x60' }, true),
  ticket('AuthDenialsSurge', 20, { [`authz_denied_total{permission="x",${replica}}`]: '0+120x60' }, true),
  ticket(
    'AuthDenialsSurge',
    20,
    {
      [`auth_attempts_total{outcome="refused",${replica}}`]: '0+20x60',
      [`auth_attempts_total{outcome="accepted",${replica}}`]: '0+6000x60',
      [`authz_denied_total{permission="x",${replica}}`]: '0+20x60',
    },
    false,
  ),
];
