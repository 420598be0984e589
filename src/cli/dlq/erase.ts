import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { confirm, requireTerminal } from '../confirm.ts';
import { SilentFailure, UsageError } from '../exit-code.ts';
import { sliceCommand } from '../slice/api-command.ts';
import type { Values } from '../slice/define-command.ts';
import { requestOf } from '../slice/request-of.ts';
import type { Terminal } from '../terminal.ts';

type Erased = Readonly<{
  messages: number;
  archived: number;
  redrive_items: number;
  remaining: number;
  topics: readonly string[];
}>;

const route = 'POST /api/v1/dlq/erasures';
/** The server deletes all messages of the key before it answers. */
const timeoutMs = 120_000;

export const erase = sliceCommand(
  {
    name: 'erase',
    route,
    description: 'erase all messages with a key, with what is stored about them',
    inputs: [
      { flags: '--key <text>', text: 'the whole key', conflicts: ['keyBase64'] },
      { flags: '--key-base64 <text>', text: 'a key that is not text, in Base64' },
      {
        flags: '--reason <text>',
        text: 'reason, for the audit log; must not name the key',
        isRequired: true,
      },
      { flags: '--dry-run', text: 'only count the messages' },
      { flags: '-y, --yes', text: 'do not ask for confirmation', field: null },
    ],
    examples: ["redrive dlq erase --key customer-17 --reason 'request 4711' --dry-run"],
  },
  async (session, values, terminal) => {
    if (values['key'] === undefined && values['keyBase64'] === undefined)
      throw new UsageError('--key or --key-base64 is required');
    const request = requestOf(route, [], {});
    const input = withoutUndefined({
      key: values['key'],
      key_base64: values['keyBase64'],
      reason: values['reason'],
    });
    const call = { ...request, input, timeoutMs };
    const counted = await session.call<Erased>({ ...call, input: { ...input, dry_run: true } });
    if (values['dryRun'] === true) return session.show(counted, (found) => printCount(found, session));
    if (values['yes'] !== true) await askFor(counted.value.remaining, session, terminal);
    const erased = await session.call<Erased>(call);
    session.show(erased, (done) => printErased(done, session));
    if (erased.value.remaining > 0) throw new SilentFailure();
  },
);

function withoutUndefined(fields: Values): Values {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function printCount({ remaining }: Erased, { print }: ApiSession): void {
  print.line(`${remaining.toLocaleString('en')} messages have this key; nothing was erased`);
}

async function askFor(count: number, { print }: ApiSession, terminal: Terminal): Promise<void> {
  requireTerminal(terminal);
  if (await confirm(terminal, `Erase ${count.toLocaleString('en')} messages for good?`)) return;
  print.note('nothing was erased');
  throw new SilentFailure();
}

function printErased({ messages, archived, remaining, topics }: Erased, { print }: ApiSession): void {
  print.line(
    `erased ${(messages + archived).toLocaleString('en')} messages, ${archived.toLocaleString('en')} of them archived`,
  );
  if (remaining > 0)
    print.note(
      `${remaining.toLocaleString('en')} are still stored: being retried or locked; run the command again`,
    );
  if (topics.length > 0)
    print.note(
      `these topics may have copies until their retention ends: ${topics.map(escapeText).join(', ')}`,
    );
  print.note('backups, WAL and notifications that were sent are not changed');
}
