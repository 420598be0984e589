import type { Terminal } from '../terminal.ts';
import { createPrinter, type Printer } from '../output/printer.ts';
import type { Answer } from '../../client-http/index.ts';
import type { ApiClient } from './api-client.ts';
import { apiClientFor, type ApiArgs } from './api-options.ts';

/** A command's connection to a running server, and its output. */
export type ApiSession = ApiClient &
  Readonly<{
    /** Prints the answer unchanged with `--json`, else with `write`. */
    show<T>(answer: Answer<T>, write: (value: T) => void): void;
    print: Printer;
    now: Date;
  }>;

export function openApiSession(terminal: Terminal, args: ApiArgs): ApiSession {
  const client = apiClientFor(terminal, args);
  const print = createPrinter(terminal);
  return {
    ...client,
    show: ({ text, value }, write) => (args.json === true ? print.json(text) : write(value)),
    print,
    now: new Date(),
  };
}
