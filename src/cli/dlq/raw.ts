import { escapeLines, escapeText, isHarmless } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { SilentFailure, UsageError } from '../exit-code.ts';
import { sliceCommand } from '../slice/api-command.ts';
import type { Input } from '../slice/define-command.ts';
import { requestOf } from '../slice/request-of.ts';
import type { Terminal } from '../terminal.ts';
import { wholeNumber } from '../whole-number.ts';
import { messageId } from './message.ts';

type Header = Readonly<{
  key: string | null;
  key_base64?: string;
  value: string | null;
  value_base64?: string;
}>;

/** The record of one version of a message. */
export type Raw = Readonly<{
  id: string;
  version: number;
  key_base64: string | null;
  value_base64: string | null;
  key_text?: string;
  value_text?: string;
  headers: readonly Header[];
}>;

/** A value can have 100 MB. */
export const timeoutMs = 300_000;

export const version: Input = {
  flags: '--at <version>',
  text: 'version; 0 is the original (default: the newest)',
  field: 'version',
  parse: wholeNumber(0, 2_147_483_647),
};

export const raw = sliceCommand(
  {
    name: 'raw',
    route: 'GET /api/v1/dlq/messages/{id}/raw',
    description: "print a message's record: key, value and headers",
    inputs: [
      messageId,
      { flags: '--key', text: 'write only the bytes of the key', conflicts: ['value', 'json'] },
      version,
      { flags: '--value', text: 'write only the bytes of the value', conflicts: ['key', 'json'] },
    ],
    examples: [
      'redrive dlq raw 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31',
      'redrive dlq raw 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --value > value.bin',
      'redrive dlq raw 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --at 0',
    ],
  },
  async (session, values, terminal) => {
    const call = { ...requestOf('GET /api/v1/dlq/messages/{id}/raw', [version], values), timeoutMs };
    const answer = await session.call<Raw>(call);
    const { key_base64: key, value_base64: value } = answer.value;
    if (values['key'] === true) writeBytes(terminal, session, { part: 'key', base64: key });
    else if (values['value'] === true) writeBytes(terminal, session, { part: 'value', base64: value });
    else session.show(answer, (record) => showRaw(session, record));
  },
);

function writeBytes(
  terminal: Terminal,
  { print }: ApiSession,
  { part, base64 }: Readonly<{ part: 'key' | 'value'; base64: string | null }>,
): void {
  if (base64 === null) {
    print.note(`redrive: the record has no ${part} (null, not empty)`);
    throw new SilentFailure();
  }
  const bytes = Buffer.from(base64, 'base64');
  if (terminal.stdout.isTTY === true && !isHarmless(bytes))
    throw new UsageError(`the ${part} has control characters: write it to a file with --${part} > file`);
  terminal.stdout.write(bytes);
}

export function showRaw({ print }: ApiSession, raw: Raw): void {
  showPart('key', raw.key_base64, raw.key_text);
  showPart('value', raw.value_base64, raw.value_text);
  print.line(print.paint('faint', `headers (${raw.headers.length})`));
  for (const header of raw.headers) print.line(`  ${headerLine(header)}`);

  function showPart(name: string, base64: string | null, text: string | undefined): void {
    const size = base64 === null ? 'null' : `${Buffer.byteLength(base64, 'base64')} bytes`;
    const form = base64 !== null && text === undefined ? ', not text, shown as base64' : '';
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
