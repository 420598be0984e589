import type { Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { withExamples } from '../examples.ts';
import { escapeText } from '../output/escape-text.ts';
import type { Printer } from '../output/printer.ts';
import type { Terminal } from '../terminal.ts';
import { toneOf } from './order.ts';
import { openApiSession } from '../api/api-session.ts';
import { bodyWith, keyHeader, readRequest, withRequestOptions, type RequestArgs } from './request-input.ts';

type AddArgs = ApiArgs & RequestArgs & Readonly<{ destination?: string; orderingKey?: string }>;
/** The answer to a new order; a replayed one gives the first answer again. */
export type Added = Readonly<{ id: number; destination: string; status: string }>;

export function addAddCommand(outbox: Command, terminal: Terminal): void {
  withExamples(
    withRequestOptions(
      withApiOptions(outbox.command('add').description('place an order; the same key again changes nothing')),
    )
      .option('--destination <name>', 'where it goes; not needed where there is only one')
      .option('--ordering-key <key>', 'orders of one such key go out one after another'),
    `redrive outbox add --destination broker --key order-2026-000117 --request '{"symbol":"USDJPY","intent":"BUY","qty":10000}'`,
    'redrive outbox add --key order-2026-000117 --ordering-key account-7 --request-file order.json',
    'jq .order event.json | redrive outbox add --key order-2026-000117 --request-file -',
  ).action((args: AddArgs) => addOrder(terminal, args));
}

async function addOrder(terminal: Terminal, args: AddArgs): Promise<void> {
  const { destination, key, orderingKey, traceId } = args;
  const headers = keyHeader(key);
  const request = await readRequest(terminal, args);
  const fields = { destination, idempotency_key: key, ordering_key: orderingKey, trace_id: traceId };
  const session = openApiSession(terminal, args, 'outbox');
  const { print } = session;
  const answer = await session.call<Added>({
    method: 'POST',
    path: ['orders'],
    headers,
    body: bodyWith(fields, request),
  });
  session.show(answer, ({ id, destination: name, status }) => {
    print.line(`${id} ${print.paint(toneOf(status), escapeText(status))} for ${escapeText(name)}`);
    if (answer.status !== created) sayReplayed(print, id);
  });
}

/** The HTTP status of an order that is new; a replayed one has another. */
export const created = 201;

export function sayReplayed(print: Printer, id: number): void {
  print.note(
    `it was placed before, and that was the answer then; how it stands now: redrive outbox show ${id}`,
  );
}
