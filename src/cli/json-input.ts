import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { messageOf } from '../kernel/errors.ts';
import { UsageError } from './exit-code.ts';
import { escapeText } from '../kernel/escape-text.ts';
import type { Terminal } from './terminal.ts';

/** The bytes of a file, or of standard input (`-`). */
export async function readBytes({ stdin }: Terminal, file: string): Promise<Buffer> {
  return (file === '-' ? buffer(stdin) : readFile(file)).catch((error: unknown) => {
    throw new UsageError(`cannot read ${nameOf(file)}: ${escapeText(messageOf(error))}`);
  });
}

function nameOf(file: string): string {
  return file === '-' ? 'standard input' : escapeText(file);
}

/** Text from an option, from a file, or from standard input (`-`). */
export async function readText(
  terminal: Terminal,
  from: Readonly<{ text: string | undefined; file: string | undefined; what: string; options: string }>,
): Promise<string> {
  if (from.text !== undefined) return from.text;
  const { file } = from;
  if (file === undefined) throw new UsageError(`${from.what} is missing: give ${from.options}`);
  const bytes = await readBytes(terminal, file);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new UsageError(`${nameOf(file)} is not UTF-8`);
  }
}

export function parseJson(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${what} is not JSON: ${escapeText(messageOf(error))}`);
  }
}
