import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { UsageError } from './exit-code.ts';
import type { Terminal } from './terminal.ts';

/** Without a terminal nobody can confirm: a script has to pass `--yes`. */
export function requireTerminal({ stdin }: Terminal): void {
  if (stdin.isTTY !== true) throw new UsageError('not interactive; pass --yes to confirm');
}

/** Asks for a yes. Anything else, also the end of the input, counts as no. */
export async function confirm(terminal: Terminal, question: string): Promise<boolean> {
  const answer = await ask(terminal, `${question} [y/N]`);
  return /^y(es)?$/i.test(answer.trim());
}

/** One line; empty at the end of the input. */
export async function ask(terminal: Terminal, question: string): Promise<string> {
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      terminal.stderr.write(chunk);
      done();
    },
  });
  const reader = createInterface({ input: terminal.stdin, output });
  try {
    const ended = new Promise<string>((resolve) => reader.once('close', () => resolve('')));
    return await Promise.race([reader.question(`${question} `), ended]);
  } finally {
    reader.close();
  }
}
