import { Option, type Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { withExamples } from '../examples.ts';
import { SilentFailure, UsageError } from '../exit-code.ts';
import { escapeLines, escapeText, isHarmless } from '../output/escape-text.ts';
import type { Terminal } from '../terminal.ts';
import { callAndShow, openDlqSession, type DlqSession } from './dlq-session.ts';

type Header = Readonly<{
  key: string | null;
  key_base64?: string;
  value: string | null;
  value_base64?: string;
}>;

type Raw = Readonly<{
  id: string;
  key_base64: string | null;
  value_base64: string | null;
  key_text?: string;
  value_text?: string;
  headers: readonly Header[];
}>;

type RawArgs = ApiArgs & Readonly<{ key?: boolean; value?: boolean }>;

/** One value can be a hundred megabytes. */
const timeoutMs = 300_000;

export function addRawCommand(dlq: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(
      dlq.command('raw').description("a message's record as it was read: key, value and headers"),
    )
      .argument('<id>', "the message's id")
      .addOption(new Option('--key', 'only the bytes of the key').conflicts(['value', 'json']))
      .addOption(new Option('--value', 'only the bytes of the value').conflicts(['key', 'json'])),
    'redrive dlq raw 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31',
    'redrive dlq raw 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --value > value.bin',
  ).action(async (id: string, args: RawArgs) => {
    const call = { path: ['messages', id, 'raw'], timeoutMs };
    if (args.key !== true && args.value !== true) {
      await callAndShow<Raw>({ terminal, args }, call, (raw, session) => showRaw(session, raw));
      return;
    }
    const session = openDlqSession(terminal, args);
    const { value: raw } = await session.call<Raw>(call);
    const part = args.key === true ? 'key' : 'value';
    writeBytes(terminal, session, { part, base64: part === 'key' ? raw.key_base64 : raw.value_base64 });
  });
}

function writeBytes(
  terminal: Terminal,
  { print }: DlqSession,
  { part, base64 }: Readonly<{ part: 'key' | 'value'; base64: string | null }>,
): void {
  if (base64 === null) {
    print.note(`redrive: the record has no ${part} (it is null, not empty)`);
    throw new SilentFailure();
  }
  const bytes = Buffer.from(base64, 'base64');
  if (terminal.stdout.isTTY === true && !isHarmless(bytes))
    throw new UsageError(`the ${part} could disturb the terminal: write it to a file with --${part} > file`);
  terminal.stdout.write(bytes);
}

function showRaw({ print }: DlqSession, raw: Raw): void {
  showPart('key', raw.key_base64, raw.key_text);
  showPart('value', raw.value_base64, raw.value_text);
  print.line(print.paint('faint', `headers (${raw.headers.length})`));
  for (const header of raw.headers) print.line(`  ${headerLine(header)}`);

  function showPart(name: string, base64: string | null, text: string | undefined): void {
    const size = base64 === null ? 'null' : `${Buffer.byteLength(base64, 'base64')} bytes`;
    const form = base64 !== null && text === undefined ? ', no text, so base64' : '';
    print.line(print.paint('faint', `${name} (${size}${form})`));
    const lines = text === undefined ? (base64 === null ? [] : [base64]) : escapeLines(text);
    for (const line of lines) print.line(`  ${line}`);
  }
}

function headerLine({ key, key_base64, value, value_base64 }: Header): string {
  const name = key === null ? `base64 ${key_base64 ?? ''}` : escapeText(key);
  if (value_base64 === undefined) return `${name}: null`;
  return value === null ? `${name}: base64 ${value_base64}` : `${name}: ${escapeText(value)}`;
}
