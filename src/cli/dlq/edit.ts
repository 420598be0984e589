import { isUtf8 } from 'node:buffer';
import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiCall } from '../api/api-client.ts';
import type { ApiSession } from '../api/api-session.ts';
import { SilentFailure, UsageError } from '../exit-code.ts';
import { readBytes } from '../json-input.ts';
import { sliceCommand } from '../slice/api-command.ts';
import type { Values } from '../slice/define-command.ts';
import { requestOf, type Route } from '../slice/request-of.ts';
import type { Terminal } from '../terminal.ts';
import { openEditor } from './open-editor.ts';
import { messageId, type Message } from './message.ts';
import type { Raw } from './raw.ts';

type Edited = Readonly<{ id: string; version: number }>;
type Validation = Readonly<{
  valid: boolean;
  version: number;
  problems: readonly Readonly<{ message: string }>[];
  warnings: readonly Readonly<{ field: string; message: string }>[];
  value: Readonly<{ bytes: number | null; format: string }> | null;
  target: Readonly<{ topic: string; state: string; consumer_groups: readonly string[] | null }>;
}>;
type Changes = Readonly<Record<string, unknown>>;

/** A file that the user has edited; it is kept if the edit fails. */
type Draft = Readonly<{ changes: Changes; done: () => Promise<void> }>;

/** A value can have several MB. */
const timeoutMs = 120_000;

export const edit = sliceCommand(
  {
    name: 'edit',
    route: 'POST /api/v1/dlq/messages/{id}/edit',
    description: 'correct a PENDING or DEAD message: makes a new version, which the next retry publishes',
    inputs: [
      messageId,
      {
        flags: '--value-file <file>',
        text: 'new value, from a file; - is standard input',
        conflicts: ['nullValue'],
      },
      { flags: '--null-value', text: 'publish a null value (a tombstone)' },
      { flags: '--key <text>', text: 'new key', conflicts: ['nullKey'] },
      { flags: '--null-key', text: 'publish no key' },
      { flags: '--header <name=value...>', text: 'set a header; replaces all of this name' },
      { flags: '--remove-header <name...>', text: 'remove all headers of this name' },
      { flags: '--target <topic>', text: 'new target topic; must be in dlq.allowed_targets' },
      { flags: '--reason <text>', text: 'reason, for the history', isRequired: true },
      { flags: '--may-send-twice', text: 'edit it although the outcome of its newest attempt is unknown' },
      { flags: '--dry-run', text: 'check the edit without making it' },
    ],
    examples: [
      "redrive dlq edit 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --value-file order.json --reason 'wrong currency'",
      "redrive dlq edit 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --reason 'wrong currency'    # opens $EDITOR",
    ],
  },
  async (session, values, terminal) => {
    // The tag is older than everything that is read after it, so the server refuses what is based on an old state.
    const message = await session.call<Message>(requestOf('GET /api/v1/dlq/messages/{id}', [], values));
    const given = await changesFrom(session, values, terminal);
    const draft: Draft =
      Object.keys(given).length > 0
        ? { changes: given, done: async () => {} }
        : await draftFrom(session, values, terminal);
    const twice = values['maySendTwice'] === true ? { may_send_twice: true } : {};
    const request = (route: Route): ApiCall => {
      const { input, ...call } = requestOf(route, [], values);
      const body = { ...draft.changes, ...twice, reason: values['reason'] };
      return { ...call, input: { ...input, ...body }, ifMatch: message.etag, timeoutMs };
    };
    if (values['dryRun'] === true) {
      const found = await session.call<Validation>(request('POST /api/v1/dlq/messages/{id}/validate'));
      session.show(found, (validation) => showValidation(session, validation));
      if (!found.value.valid) throw new SilentFailure();
      return draft.done();
    }
    const answer = await session.call<Edited>(request('POST /api/v1/dlq/messages/{id}/edit'));
    await draft.done();
    session.show(answer, ({ id, version }) => session.print.line(`${id} version ${version}`));
    if (message.value.status === 'DEAD')
      session.print.note('the message stays DEAD: reopen it before it is retried');
  },
);

function showValidation({ print }: ApiSession, { problems, warnings, ...found }: Validation): void {
  const { value, target, version } = found;
  for (const { message } of problems) print.line(print.paint('bad', escapeText(message)));
  for (const { field, message } of warnings)
    print.line(print.paint('doubtful', escapeText(`warning: ${field} ${message}`)));
  if (value !== null)
    print.line(value.bytes === null ? 'value: null' : `value: ${value.bytes} bytes, ${value.format}`);
  const { topic, state, consumer_groups: groups } = target;
  const readers =
    groups === null ? 'readers not known' : `read by ${groups.join(', ') || 'no consumer group'}`;
  print.line(escapeText(`target: ${topic} (${state}), ${readers}`));
  print.note(found.valid ? `the edit would make version ${version}` : 'the edit would be refused');
}

async function changesFrom(session: ApiSession, values: Values, terminal: Terminal): Promise<Changes> {
  const file = values['valueFile'] as string | undefined;
  const { key, target } = values;
  return {
    ...(file === undefined ? {} : valueOf(await readBytes(terminal, file))),
    ...(values['nullValue'] === true ? { value: null } : {}),
    ...(key === undefined ? {} : { key }),
    ...(values['nullKey'] === true ? { key: null } : {}),
    ...(await headersFrom(session, values)),
    ...(target === undefined ? {} : { target_topic: target }),
  };
}

function valueOf(bytes: Buffer): Changes {
  return isUtf8(bytes) && !bytes.includes(0)
    ? { value: bytes.toString('utf8') }
    : { value_base64: bytes.toString('base64') };
}

/** The list of the newest version with the changes; headers that Redrive sets itself are left to it. */
async function headersFrom(session: ApiSession, values: Values): Promise<Changes> {
  const set = ((values['header'] ?? []) as readonly string[]).map(readHeader);
  const removed = (values['removeHeader'] ?? []) as readonly string[];
  if (set.length + removed.length === 0) return {};
  const gone = new Set([...removed, ...set.map(({ key }) => key)]);
  const { headers } = await readRaw(session, values);
  const kept = headers.filter(
    ({ key }) => key === null || !(gone.has(key) || key.toLowerCase().startsWith('redrive-')),
  );
  return { headers: [...kept, ...set] };
}

function readHeader(text: string): Readonly<{ key: string; value: string }> {
  const at = text.indexOf('=');
  if (at === -1) throw new UsageError(`${escapeText(text)} is not a header: give --header name=value`);
  return { key: text.slice(0, at), value: text.slice(at + 1) };
}

async function readRaw(session: ApiSession, values: Values): Promise<Raw> {
  const call = { ...requestOf('GET /api/v1/dlq/messages/{id}/raw', [], values), timeoutMs };
  return (await session.call<Raw>(call)).value;
}

/** Lets the user edit the value in $EDITOR. */
async function draftFrom(session: ApiSession, values: Values, terminal: Terminal): Promise<Draft> {
  if (terminal.stdin.isTTY !== true)
    throw new UsageError(
      'nothing to change: give --value-file, --null-value, --key, --null-key, --header, --remove-header or --target',
    );
  const { value_text: text, value_base64: base64 } = await readRaw(session, values);
  if (base64 !== null && text === undefined)
    throw new UsageError('the value is not text: give the new one with --value-file');
  const edited = await openEditor(terminal, `${String(values['id'])}.txt`, text ?? '');
  if (edited.text === (text ?? '')) {
    await edited.remove();
    session.print.note('nothing was changed');
    throw new SilentFailure();
  }
  session.print.note(`your text is in ${escapeText(edited.file)} until the edit is done`);
  return { changes: valueOf(Buffer.from(edited.text)), done: edited.remove };
}
