import { escapeText } from '../../kernel/escape-text.ts';
import { apiCommand, type AddCommand, type Answered } from '../slice/api-command.ts';
import type { Input } from '../slice/define-command.ts';
import { statusOf, toneOf, type Order } from './order.ts';

/** The answer to a new order. The same key again returns the first answer. */
type Added = Readonly<{ id: number; destination: string; status: string }>;

/** HTTP status of a new order. */
const created = 201;

const id: Input = { flags: '<id>', text: 'order id' };
const key: Input = {
  flags: '--key <key>',
  text: 'idempotency key: 8 to 64 visible ASCII characters',
  field: 'idempotency_key',
  header: 'idempotency-key',
  isRequired: true,
};
const decision: readonly Input[] = [
  { flags: '--reason <text>', text: 'reason, for the audit log' },
  {
    flags: '--effect-checked',
    text: 'confirm that you checked at the receiver whether an attempt in doubt took effect',
  },
];
const traceId: Input = { flags: '--trace-id <id>', text: 'id to add to the audit log' };
const request = {
  field: 'request',
  text: 'JSON object to send',
  isRequired: true,
  isObject: true,
  hasFile: true,
} as const;

export const add = apiCommand<Added>({
  name: 'add',
  description: 'add an order; the same key again has no effect',
  route: 'POST /api/v1/outbox/orders',
  inputs: [
    { flags: '--destination <name>', text: 'destination (default: the only one configured)' },
    key,
    { flags: '--ordering-key <key>', text: 'orders with the same ordering key are sent one after another' },
    traceId,
  ],
  json: request,
  examples: [
    `redrive outbox add --destination broker --key order-2026-000117 --request '{"symbol":"USDJPY","intent":"BUY","qty":10000}'`,
    'redrive outbox add --key order-2026-000117 --ordering-key account-7 --request-file order.json',
    'jq .order event.json | redrive outbox add --key order-2026-000117 --request-file -',
  ],
  print: (added, about) => printAdded(added, `for ${escapeText(added.destination)}`, about),
});

export const supersede = apiCommand<Added>({
  name: 'supersede',
  description: 'replace a dead order by a corrected one with a new key',
  route: 'POST /api/v1/outbox/orders/{id}/supersede',
  inputs: [id, key, ...decision, traceId],
  json: request,
  examples: [
    `redrive outbox supersede 1042 --key order-2026-000117-b --request '{"symbol":"USDJPY","intent":"BUY","qty":10000}' --reason 'qty was 0'`,
    'redrive outbox supersede 1042 --key order-2026-000117-b --request-file order.json --effect-checked',
  ],
  print: (added, about) => printAdded(added, `(replaces ${escapeText(String(about.values['id']))})`, about),
});

function printAdded(added: Added, more: string, { print, status }: Answered): void {
  print.line(`${added.id} ${print.paint(toneOf(added), escapeText(added.status))} ${more}`);
  if (status !== created)
    print.note(`already added; for its current status run \`redrive outbox show ${added.id}\``);
}

export const cancel = decide('cancel', 'cancel a queued or failed order', "'the customer withdrew'");
export const skip = decide('skip', 'skip a dead order and unblock the orders behind it', "'placed by phone'");

function decide(name: 'cancel' | 'skip', description: string, reason: string): AddCommand {
  return apiCommand<Order>({
    name,
    description,
    route: `POST /api/v1/outbox/orders/{id}/${name}`,
    inputs: [id, ...decision],
    examples: [`redrive outbox ${name} 1042 --reason ${reason}`],
    print: (order, { print }) =>
      print.line(`${order.id} ${print.paint(toneOf(order), escapeText(statusOf(order)))}`),
  });
}
