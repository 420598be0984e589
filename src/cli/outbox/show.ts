import type { Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { withExamples } from '../examples.ts';
import type { Printer } from '../output/printer.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { instantFact, showFacts, showJson, showTitle, type Fact } from '../output/facts.ts';
import { statusOf, toneOf, type Attempt, type AuditEntry, type Order } from './order.ts';
import { openApiSession } from '../api/api-session.ts';

type OrderWithHistory = Order & Readonly<{ attempts: readonly Attempt[]; audit: readonly AuditEntry[] }>;

export function addShowCommand(outbox: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(
      outbox.command('show').description('one order with its request, its attempts and its audit'),
    ).argument('<id>', "the order's id"),
    'redrive outbox show 1042',
  ).action(async (id: string, args: ApiArgs) => {
    const session = openApiSession(terminal, args, 'outbox');
    const { print, now } = session;
    session.show(await session.call<OrderWithHistory>({ path: ['orders', id] }), (order) => {
      showFacts(print, factsOf(order, now));
      showJson(print, 'request', order.request);
      showAttempts(print, order.attempts);
      showAudit(print, order.audit);
    });
  });
}

const attemptColumns: readonly Column<Attempt>[] = [
  { title: 'NO', text: ({ no }) => String(no), align: 'right' },
  { title: 'STARTED', text: ({ started_at }) => started_at ?? '-' },
  { title: 'TOOK', text: durationOf, align: 'right' },
  { title: 'OUTCOME', text: ({ outcome }) => outcome },
  { title: 'OUTSIDE ID', text: ({ outside_id }) => outside_id ?? '-', minWidth: 10 },
  { title: 'ERROR', text: ({ error }) => error ?? '', minWidth: 12 },
];

function durationOf({ started_at, ended_at }: Attempt): string {
  if (started_at === null || ended_at === null) return '-';
  return `${Date.parse(ended_at) - Date.parse(started_at)} ms`;
}

const auditColumns: readonly Column<AuditEntry>[] = [
  { title: 'AT', text: ({ at }) => at },
  { title: 'STATUS', text: statusChange },
  { title: 'RETRIES', text: ({ retry_count }) => String(retry_count), align: 'right' },
  { title: 'ACTOR', text: ({ actor }) => actor, minWidth: 10 },
  { title: 'OUTSIDE ID', text: ({ broker_order_id }) => broker_order_id ?? '-', minWidth: 10 },
  {
    title: 'WHY',
    text: ({ last_error, reason }) => [last_error, reason].filter((one) => one !== null).join('; '),
    minWidth: 10,
  },
];

function statusChange({ status_from, status_to }: AuditEntry): string {
  return status_from === status_to || status_from === null ? status_to : `${status_from} -> ${status_to}`;
}

export function showAttempts(print: Printer, attempts: readonly Attempt[]): void {
  if (attempts.length === 0) return;
  showTitle(print, 'attempts');
  print.table(attemptColumns, attempts);
}

function showAudit(print: Printer, audit: readonly AuditEntry[]): void {
  showTitle(print, 'audit');
  print.table(auditColumns, audit);
}

function factsOf(order: Order, now: Date): readonly Fact[] {
  return [
    ['id', `${order.id}${order.archived ? ' (archived)' : ''}`],
    ['status', statusOf(order), toneOf(order.status)],
    ['needs a person', needOf(order), 'bad'],
    ['key', order.idempotency_key],
    ['destination', order.destination],
    ['ordering key', order.ordering_key],
    ['waits for', order.held ? 'an earlier order of its ordering key' : null],
    ['retries', String(order.retry_count)],
    ['next attempt', instantFact(order.next_attempt_at, now)],
    ['last error', order.last_error],
    ['first sent', instantFact(order.first_sent_at, now)],
    ['in doubt', order.in_doubt ? 'an attempt may have had its effect without an answer' : null, 'doubtful'],
    ['supersedes', numberFact(order.supersedes_id)],
    ['superseded by', numberFact(order.superseded_by_id)],
    ['answer', order.response === null ? null : answerOf(order.response)],
    ['outside id', order.response?.broker_order_id ?? null],
    ['trace id', order.trace_id],
    ['request digest', order.request_digest],
    ['created', instantFact(order.created_at, now)],
    ['updated', instantFact(order.updated_at, now)],
  ];
}

function needOf({ needs_person, in_doubt }: Order): string | null {
  if (!needs_person) return null;
  const choice = 'redrive outbox supersede, or skip';
  return in_doubt ? `look outside first, then ${choice}, with --effect-checked` : choice;
}

function numberFact(value: number | null): string | null {
  return value === null ? null : String(value);
}

function answerOf({ status, digest }: NonNullable<Order['response']>): string {
  return [status === null ? null : `HTTP ${status}`, digest].filter((one) => one !== null).join(', ');
}
