import { instantFact, showFacts, showJson, showRows, showTitle, type Fact } from '../output/facts.ts';
import { ageColumn, lastColumn, numberColumn, optional, textColumn } from '../output/columns.ts';
import type { Printer } from '../output/printer.ts';
import type { Column, Tone } from '../output/render-table.ts';
import { apiCommand } from '../slice/api-command.ts';
import type { Input } from '../slice/define-command.ts';
import { facetsCommand } from '../slice/facets-command.ts';
import type { ApiSession } from '../api/api-session.ts';
import { noteMasks } from '../slice/note-masks.ts';
import { revealCommand } from '../slice/reveal-command.ts';
import { listCommand } from '../slice/list-command.ts';
import { timeInputs } from '../slice/time-inputs.ts';
import { statusColumn, statuses, statusOf, toneOf, type Order } from './order.ts';

/** One send, from its claim to its end. */
type Attempt = Readonly<{
  no: number;
  started_at: string | null;
  ended_at: string | null;
  outcome: string;
  error: string | null;
  outside_id: string | null;
}>;

type AuditEntry = Readonly<{
  at: string;
  status_from: string | null;
  status_to: string;
  retry_count: number;
  last_error: string | null;
  broker_order_id: string | null;
  actor: string;
  reason: string | null;
}>;

/** One use of an idempotency key. The key is free again when its order has been archived. */
type KeyUse = Readonly<{
  idempotency_key: string;
  request_digest: string | null;
  status: 'accepted' | 'succeeded' | 'failed';
  result_digest: string | null;
  outside_id: string | null;
  expires_at: string | null;
  created_at: string;
  updated_at: string;
  archived: boolean;
  order_id: number;
  supersedes_id: number | null;
  superseded_by_id: number | null;
  order: Order | null;
  attempts: readonly Attempt[];
}>;

const filters: readonly Input[] = [
  { flags: '--status <status>', text: 'only orders in this status', choices: statuses },
  { flags: '--destination <name>', text: 'only orders to this destination' },
  { flags: '--ordering-key <key>', text: 'only orders with this ordering key' },
  { flags: '--key <key>', text: 'only the order with this idempotency key', field: 'idempotency_key' },
  { flags: '--error-code <code>', text: 'only orders whose last error begins with this code' },
  { flags: '--fingerprint <fingerprint>', text: 'only orders whose last error has this fingerprint' },
  ...timeInputs('only orders created', { since: 'created_from', until: 'created_to' }),
  { flags: '--needs-attention', text: 'only dead orders that are neither skipped nor superseded' },
  { flags: '--in-doubt', text: 'only orders not sent that may have had their effect' },
  { flags: '--held', text: 'only orders that wait for an earlier one of their ordering key' },
];

export const list = listCommand<Order>({
  name: 'list',
  description: 'list orders, newest first',
  route: 'GET /api/v1/outbox/orders',
  items: 'orders',
  inputs: filters,
  examples: [
    'redrive outbox list --needs-attention',
    'redrive outbox list --destination broker --status failed --since 2h',
    'redrive outbox list --all --json | jq -r .orders[].idempotency_key',
  ],
  unused: ['request'],
  columns: [
    numberColumn('ID', ({ id }) => id),
    statusColumn,
    optional(numberColumn('RETRIES', ({ retry_count }) => retry_count)),
    ageColumn('AGE', ({ created_at }) => created_at),
    textColumn('DESTINATION', ({ destination }) => destination, 12),
    textColumn('KEY', ({ idempotency_key }) => idempotency_key, 16),
    lastColumn('ERROR', ({ last_error }) => last_error),
  ],
});

export const facets = facetsCommand({
  description: 'count orders by status, destination, error code and fingerprint',
  route: 'GET /api/v1/outbox/orders/facets',
  items: 'orders',
  inputs: filters,
  examples: ['redrive outbox facets', 'redrive outbox facets --needs-attention'],
});

type Lane = Readonly<{ blocked_by_id: number | null; behind: number; behind_is_lower_bound?: true }>;

type OrderDetails = Order &
  Readonly<{ lane: Lane | null; attempts: readonly Attempt[]; audit: readonly AuditEntry[] }>;

export const show = apiCommand<OrderDetails>({
  name: 'show',
  description: 'show an order with its request, attempts and audit log',
  route: 'GET /api/v1/outbox/orders/{id}',
  inputs: [{ flags: '<id>', text: 'order id' }],
  examples: ['redrive outbox show 1042'],
  print(order, session) {
    printOrder(order, session);
    noteMasks(session.print, order, `redrive outbox reveal ${order.id}`);
  },
});

export const reveal = revealCommand<OrderDetails>({
  description: 'show an order with what is masked elsewhere',
  route: 'POST /api/v1/outbox/orders/{id}/reveal',
  inputs: [{ flags: '<id>', text: 'order id' }],
  examples: ["redrive outbox reveal 1042 --reason 'ticket 4711'"],
  print: printOrder,
});

function printOrder(order: OrderDetails, { print, now }: ApiSession): void {
  showFacts(print, [...orderFacts(order, now), ...laneFacts(order.lane)]);
  showJson(print, 'request', order.request);
  showAttempts(print, order.attempts);
  showRows(print, 'audit', auditColumns, order.audit);
}

export const ledger = apiCommand<KeyUse & Readonly<{ earlier_uses: readonly KeyUse[] }>>({
  name: 'ledger',
  description: 'show whether the request with an idempotency key took effect',
  route: 'GET /api/v1/outbox/ledger/{key}',
  inputs: [{ flags: '<key>', text: 'idempotency key' }],
  examples: ['redrive outbox ledger order-2026-000117'],
  print(proof, { print, now }) {
    for (const use of [proof, ...proof.earlier_uses]) {
      if (use !== proof) showTitle(print, 'earlier use of this key');
      showFacts(print, keyFacts(use, now));
      showAttempts(print, use.attempts);
    }
  },
});

function showAttempts(print: Printer, attempts: readonly Attempt[]): void {
  showRows(print, 'attempts', attemptColumns, attempts);
}

const attemptColumns: readonly Column<Attempt>[] = [
  numberColumn('NO', ({ no }) => no),
  textColumn('STARTED', ({ started_at }) => started_at),
  numberColumn('TOOK', ({ started_at, ended_at }) =>
    started_at === null || ended_at === null ? null : `${Date.parse(ended_at) - Date.parse(started_at)} ms`,
  ),
  textColumn('OUTCOME', ({ outcome }) => outcome),
  textColumn('OUTSIDE ID', ({ outside_id }) => outside_id, 10),
  lastColumn('ERROR', ({ error }) => error),
];

const auditColumns: readonly Column<AuditEntry>[] = [
  textColumn('AT', ({ at }) => at),
  textColumn('STATUS', ({ status_from, status_to }) =>
    status_from === status_to || status_from === null ? status_to : `${status_from} -> ${status_to}`,
  ),
  optional(numberColumn('RETRIES', ({ retry_count }) => retry_count)),
  textColumn('ACTOR', ({ actor }) => actor, 10),
  optional(textColumn('OUTSIDE ID', ({ broker_order_id }) => broker_order_id, 10)),
  lastColumn('REASON', ({ last_error, reason }) => joined('; ', last_error, reason)),
];

function orderFacts(order: Order, now: Date): readonly Fact[] {
  const response = typeof order.response === 'string' ? null : order.response;
  return [
    ['id', `${order.id}${order.archived ? ' (archived)' : ''}`],
    ['status', statusOf(order), toneOf(order)],
    ['needs attention', adviceFor(order), 'bad'],
    ['key', order.idempotency_key],
    ['destination', order.destination],
    ['ordering key', order.ordering_key],
    ['retries', String(order.retry_count)],
    ['next attempt', instantFact(order.next_attempt_at, now)],
    ['last error', order.last_error],
    ['fingerprint', order.fingerprint],
    ['first sent', instantFact(order.first_sent_at, now)],
    ['in doubt', order.in_doubt ? 'an attempt without an answer may have taken effect' : null, 'doubtful'],
    ['supersedes', numberFact(order.supersedes_id)],
    ['superseded by', numberFact(order.superseded_by_id)],
    ['answer', answerOf(order)],
    ['outside id', response?.broker_order_id ?? null],
    ['added by', order.created_by ?? null],
    ['trace id', order.trace_id],
    ['request digest', order.request_digest],
    ['created', instantFact(order.created_at, now)],
    ['updated', instantFact(order.updated_at, now)],
  ];
}

function laneFacts(lane: Lane | null): readonly Fact[] {
  if (lane === null) return [];
  const { blocked_by_id: first, behind, behind_is_lower_bound: isLowerBound = false } = lane;
  return [
    ['blocked by', first === null ? null : `order ${first}, which has the same ordering key`],
    ['blocks', behind === 0 ? null : `${isLowerBound ? 'at least ' : ''}${behind} later orders of its key`],
  ];
}

function answerOf({ response }: Order): string | null {
  if (response === null || typeof response === 'string') return response;
  const { status, digest } = response;
  return joined(', ', status === null ? null : `HTTP ${status}`, digest);
}

function adviceFor({ needs_attention, in_doubt }: Order): string | null {
  if (!needs_attention) return null;
  return in_doubt
    ? 'check the receiver, then run redrive outbox supersede or skip with --effect-checked'
    : 'run redrive outbox supersede or skip';
}

const keyTones: Readonly<Record<KeyUse['status'], Tone>> = {
  accepted: 'strong',
  succeeded: 'good',
  failed: 'bad',
};

function keyFacts(use: KeyUse, now: Date): readonly Fact[] {
  const { order } = use;
  return [
    ['key', use.idempotency_key],
    ['effect', effectOf(use), keyTones[use.status]],
    ['outside id', use.outside_id],
    ['order', `${use.order_id}${order === null ? '' : `, ${statusOf(order)}, for ${order.destination}`}`],
    ['supersedes', numberFact(use.supersedes_id)],
    ['superseded by', numberFact(use.superseded_by_id)],
    ['request digest', use.request_digest],
    ['result digest', use.result_digest],
    ['accepted', instantFact(use.created_at, now)],
    ['updated', instantFact(use.updated_at, now)],
    [
      'key expires',
      use.expires_at ?? (use.archived ? null : 'after its order is sent, skipped or superseded'),
    ],
    ['archived', use.archived ? 'yes, the key can be used again' : null],
  ];
}

function effectOf({ status, order }: KeyUse): string {
  if (status === 'succeeded') return 'succeeded: it took effect once';
  if (order?.in_doubt === true) return `${status}: in doubt, an attempt may have taken effect`;
  return status === 'failed' ? 'failed: it did not take effect' : 'accepted: not confirmed yet';
}

function numberFact(value: number | null): string | null {
  return value === null ? null : String(value);
}

function joined(separator: string, ...texts: readonly (string | null)[]): string {
  return texts.filter((text) => text !== null).join(separator);
}
