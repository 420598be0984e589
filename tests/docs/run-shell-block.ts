import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { runCli } from '../../src/cli/run-cli.ts';
import { createApiClient } from '../support/api-client.ts';
import { runCommand, readersEnv, type DevProcess } from '../support/dev-process.ts';
import type { DocBlock } from '../support/doc-blocks.ts';
import { eventually } from '../support/eventually.ts';
import { commandsIn, wordsOf } from './shell-blocks.ts';

/** Runs the commands of a block against a running `npm start`, and compares what they print with what the block shows. */
export async function runShellBlock({ language, text }: DocBlock, dev: DevProcess): Promise<void> {
  const ids = await idsFor(text, dev);
  for (const { command, shown } of stepsOf(language, text)) {
    const compare = async (): Promise<void> => {
      const printed = await runTyped(ids(command), dev);
      const missing = partsOf(shown).filter((part) => !partsOf(printed.split('\n')).includes(part));
      assert.deepEqual(missing, [], `${command} printed\n${printed}`);
    };
    // What a list shows may need a moment of traffic; other commands run once.
    if (/ (list|topics|destinations|history)\b/.test(command)) await eventually(compare, patiently);
    else await compare();
  }
}

type Step = Readonly<{ command: string; shown: readonly string[] }>;

/** In a `console` block a command begins with `$`, and what it prints stands below it. */
function stepsOf(language: string, text: string): readonly Step[] {
  if (language !== 'console') return commandsIn(language, text).map((command) => ({ command, shown: [] }));
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [command = '', ...shown] = part.split('\n');
      return { command: commandsIn('sh', command)[0] ?? '', shown };
    });
}

/** What does not differ from run to run: the titles of a table, or else sentences without their numbers. */
function partsOf(lines: readonly string[]): readonly string[] {
  const header = lines.find((line) => /^[A-Z]+( [A-Z]+)*( {2,}[A-Z]+( [A-Z]+)*)+$/.test(line.trim()));
  if (header !== undefined) return header.trim().split(/ {2,}/);
  return (
    lines
      .map((line) =>
        line
          .trim()
          .replaceAll(/[\da-f]{8}-[\da-f-]{27}/g, 'ID')
          .replaceAll(/v\d+:[\da-f]{32}/g, 'FINGERPRINT')
          .replaceAll(/\d+/g, 'N'),
      )
      .filter((line) => line !== '')
      .map((line) => line.replaceAll(/\b(message|order|job|saga)s\b/g, '$1'))
      // A retried message may be back before its status is read.
      .map((line) => line.replace(/(PENDING|RESOLVED|DEAD), published/, 'published'))
  );
}

/** Ids in documents stand for those of items that the demo has now. */
async function idsFor(text: string, dev: DevProcess): Promise<(command: string) => string> {
  const { get } = createApiClient(dev.url);
  const message = await eventually(async () => {
    const path = '/api/v1/dlq/messages?topic=orders.v1&status=PENDING&page_size=1';
    const { body } = await get<{ messages: readonly { id: string }[] }>(path);
    return body.messages[0]?.id ?? assert.fail('no message is PENDING');
  }, patiently);
  const order = !/ outbox \w+ \d/.test(text)
    ? ''
    : await eventually(async () => {
        const { body } = await get<{ orders: readonly { id: number }[] }>(
          '/api/v1/outbox/orders?needs_attention=true',
        );
        return String(body.orders[0]?.id ?? assert.fail('no order is dead'));
      }, patiently);
  const group = !/ dlq group /.test(text)
    ? ''
    : await eventually(async () => {
        const { body } = await get<{ groups: readonly { fingerprint: string }[] }>('/api/v1/dlq/groups');
        return body.groups[0]?.fingerprint ?? assert.fail('there is no group');
      }, patiently);
  return (command) =>
    command
      .replace(/ dlq group [\da-f]{8}$/, ` dlq group ${group}`)
      .replaceAll(/[\da-f]{8}-[\da-f-]{27}/g, message)
      .replaceAll(/( outbox \w+) \d+/g, `$1 ${order}`)
      .replaceAll(/corrected-\d+/g, `corrected-${order}`)
      .replaceAll('http://127.0.0.1:8080', dev.url);
}

const patiently = { withinMs: 60_000 };

/** Fails if the command fails. `npx redrive` runs in this process, which saves the start of npm. */
export async function runTyped(command: string, dev: DevProcess): Promise<string> {
  const env = { REDRIVE_URL: dev.url, DATABASE_URL: dev.databaseUrl, USER: 'on-call' };
  const [, args] = /^npx redrive (.*)$/.exec(command) ?? [];
  if (args === undefined) {
    const { code, said } = await runCommand(command, readersEnv(process.env['PATH'] ?? '', env));
    assert.equal(code, 0, `${command}: ${said}`);
    return said;
  }
  let said = '';
  const output = { write: (text: string | Uint8Array): void => void (said += text.toString()) };
  const code = await runCli(wordsOf(args), { env, stdin: new PassThrough(), stdout: output, stderr: output });
  assert.equal(code, 0, `${command}: ${said}`);
  return said;
}
