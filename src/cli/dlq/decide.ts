import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { confirm, requireTerminal } from '../confirm.ts';
import { SilentFailure } from '../exit-code.ts';
import { cutToWidth } from '../output/display-width.ts';
import { apiCommand } from '../slice/api-command.ts';
import type { Input, Values } from '../slice/define-command.ts';
import { requestOf } from '../slice/request-of.ts';
import type { Terminal } from '../terminal.ts';
import { messageId, toneOf, type Message } from './message.ts';

const reason: Input = { flags: '--reason <text>', text: 'reason, for the history' };
const requiredReason: Input = { ...reason, isRequired: true };

export const dead = apiCommand<Message>({
  name: 'dead',
  description: 'mark a message DEAD: it is not retried any more',
  route: 'POST /api/v1/dlq/messages/{id}/dead',
  inputs: [messageId, reason],
  examples: ["redrive dlq dead 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --reason 'the order was cancelled'"],
  print: printStatus,
});

export const reopen = apiCommand<Message>({
  name: 'reopen',
  description: 'set a message to PENDING again and reset its retry count',
  route: 'POST /api/v1/dlq/messages/{id}/reopen',
  inputs: [messageId, requiredReason],
  examples: ["redrive dlq reopen 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --reason 'the consumer was fixed'"],
  print: printStatus,
});

export const route = apiCommand<Message>({
  name: 'route',
  description: 'set the topic to which a PENDING or DEAD message is retried',
  route: 'POST /api/v1/dlq/messages/{id}/route',
  inputs: [
    messageId,
    { flags: '<topic>', text: 'target topic; need not be in dlq.allowed_targets', field: 'target_topic' },
    requiredReason,
  ],
  examples: [
    "redrive dlq route 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 orders.v2 --reason 'the topic was renamed'",
  ],
  print: (message, { print }) =>
    print.line(
      `${message.id} ${print.paint(toneOf(message), message.status)}, target topic ${escapeText(message.original_topic)}`,
    ),
});

export const remove = apiCommand<Readonly<{ message: string }>>({
  name: 'delete',
  description: 'delete a message and its payload; its history stays',
  route: 'DELETE /api/v1/dlq/messages/{id}',
  inputs: [messageId, { flags: '-y, --yes', text: 'do not ask for confirmation', field: null }],
  examples: ['redrive dlq delete 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --yes'],
  before: confirmDeletion,
  print: ({ message }, { print }) => print.line(escapeText(message)),
});

function printStatus(message: Message, { print }: ApiSession): void {
  const { id, status, retry_count, max_retries } = message;
  print.line(`${id} ${print.paint(toneOf(message), status)}, ${retry_count} of ${max_retries} retries used`);
}

async function confirmDeletion(session: ApiSession, values: Values, terminal: Terminal): Promise<void> {
  if (values['yes'] === true) return;
  requireTerminal(terminal);
  const { value } = await session.call<Message>(requestOf('GET /api/v1/dlq/messages/{id}', [], values));
  const error = cutToWidth(escapeText(value.error_message), 60);
  session.print.note(`${value.id}  ${value.status}  ${escapeText(value.original_topic)}  ${error}`);
  if (await confirm(terminal, 'Delete it with its payload?')) return;
  session.print.note('nothing was deleted');
  throw new SilentFailure();
}
