import type { Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { withExamples } from '../examples.ts';
import { escapeText } from '../output/escape-text.ts';
import type { Terminal } from '../terminal.ts';
import { created, sayReplayed, type Added } from './add.ts';
import { statusOf, toneOf, type Order } from './order.ts';
import { openApiSession } from '../api/api-session.ts';
import { bodyWith, keyHeader, readRequest, withRequestOptions, type RequestArgs } from './request-input.ts';

type ActionArgs = ApiArgs & Readonly<{ reason?: string; effectChecked?: boolean }>;

export function addActionCommands(outbox: Command, terminal: Terminal): void {
  addDecision('cancel', 'give up an order that waits: queued or failed', "'the customer withdrew'");
  addDecision('skip', 'leave a dead order undone, and let those behind it go on', "'placed by phone'");

  withExamples(
    withRequestOptions(
      withActionOptions(
        outbox
          .command('supersede')
          .description('put a corrected order, with a key of its own, in the place of a dead one'),
      ),
    ),
    `redrive outbox supersede 1042 --key order-2026-000117-b --request '{"symbol":"USDJPY","intent":"BUY","qty":10000}' --reason 'qty was 0'`,
    'redrive outbox supersede 1042 --key order-2026-000117-b --request-file order.json --effect-checked',
  ).action((id: string, args: ActionArgs & RequestArgs) => supersede(terminal, id, args));

  function addDecision(name: 'cancel' | 'skip', description: string, reason: string): void {
    withExamples(
      withActionOptions(outbox.command(name).description(description)),
      `redrive outbox ${name} 1042 --reason ${reason}`,
    ).action(async (id: string, args: ActionArgs) => {
      const session = openApiSession(terminal, args, 'outbox');
      const { print } = session;
      const path = ['orders', id, name];
      const answer = await session.call<Order>({ method: 'POST', path, body: decisionOf(args) });
      session.show(answer, (order) =>
        print.line(`${order.id} ${print.paint(toneOf(order.status), escapeText(statusOf(order)))}`),
      );
    });
  }
}

async function supersede(terminal: Terminal, id: string, args: ActionArgs & RequestArgs): Promise<void> {
  const headers = keyHeader(args.key);
  const request = await readRequest(terminal, args);
  const fields = { idempotency_key: args.key, ...decisionOf(args), trace_id: args.traceId };
  const session = openApiSession(terminal, args, 'outbox');
  const { print } = session;
  const answer = await session.call<Added>({
    method: 'POST',
    path: ['orders', id, 'supersede'],
    headers,
    body: bodyWith(fields, request),
  });
  session.show(answer, ({ id: added, status }) => {
    const place = `in the place of ${escapeText(id)}`;
    print.line(`${added} ${print.paint(toneOf(status), escapeText(status))} ${place}`);
    if (answer.status !== created) sayReplayed(print, added);
  });
}

function withActionOptions(command: Command): Command {
  return withApiOptions(command)
    .argument('<id>', "the order's id")
    .option('--reason <text>', 'why, for its audit')
    .option('--effect-checked', 'you looked outside: an attempt in doubt had no effect, or it is dealt with');
}

function decisionOf({ reason, effectChecked }: ActionArgs): Readonly<Record<string, unknown>> {
  return { reason, effect_checked: effectChecked };
}
