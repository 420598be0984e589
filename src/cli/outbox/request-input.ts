import { Option, type Command } from 'commander';
import { UsageError } from '../exit-code.ts';
import { parseJson, readText } from '../json-input.ts';
import type { Terminal } from '../terminal.ts';

export type RequestArgs = Readonly<{ key: string; request?: string; requestFile?: string; traceId?: string }>;

/** What every command that makes an order is told about it. */
export function withRequestOptions(command: Command): Command {
  return command
    .requiredOption('--key <key>', 'its idempotency key: 8 to 64 visible ASCII characters')
    .addOption(new Option('--request <json>', 'what is sent: a JSON object').conflicts('requestFile'))
    .option('--request-file <file>', 'what is sent, from a file; - is standard input')
    .option('--trace-id <id>', 'an id that its audit carries');
}

/**
 * The request as it was given: checked, but not written anew, so that numbers keep their digits and the server
 * sees a name that stands twice.
 */
export async function readRequest(terminal: Terminal, args: RequestArgs): Promise<string> {
  const text = await readText(terminal, {
    text: args.request,
    file: args.requestFile,
    what: 'the request',
    options: '--request or --request-file',
  });
  const value = parseJson(text, 'the request');
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageError('the request is not a JSON object');
  return text;
}

/** The body of a call. The request stands in it as the one value that `readRequest` found it to be. */
export function bodyWith(
  fields: Readonly<Record<string, unknown>> & Readonly<{ idempotency_key: string }>,
  request: string,
): string {
  return `${JSON.stringify(fields).slice(0, -1)},"request":${request}}`;
}

/** The key as the header that must come with it. How long it may be is the server's to say. */
export function keyHeader(key: string): Readonly<Record<string, string>> {
  if (!/^[!-~]+$/.test(key))
    throw new UsageError('--key travels in an HTTP header: it may hold only visible ASCII characters');
  return { 'idempotency-key': key };
}
