import { escapeText } from '../../kernel/escape-text.ts';
import { apiCommand } from '../slice/api-command.ts';
import { toneOf } from './saga-status.ts';

export const start = apiCommand<Readonly<{ saga_id: string; status: string }>>({
  name: 'start',
  description: 'start a saga',
  route: 'POST /api/v1/sagas',
  inputs: [
    { flags: '<workflow>', text: 'workflow name', field: 'workflow_name' },
    { flags: '--correlation-id <id>', text: 'id of the business object, for searching' },
    { flags: '--initiated-by <service>', text: 'service that starts the saga' },
    {
      flags: '--key <key>',
      text: 'idempotency key: a key that was used before returns the saga started with it',
      field: null,
      header: 'idempotency-key',
    },
  ],
  json: { field: 'payload', text: "the saga's payload", hasFile: true },
  examples: [
    `redrive saga start place-order --payload '{"sku":"shoe","qty":1}' --key order-117`,
    'redrive saga start place-order --payload-file order.json --correlation-id order-117',
  ],
  print({ saga_id, status }, { print, status: http }) {
    print.line(`${saga_id} ${print.paint(toneOf({ status }), escapeText(status))}`);
    if (http === 200) print.note('already started with this key');
  },
});
