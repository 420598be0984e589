import type { ApiAnswer, ApiCall } from './api-client.ts';
import { apiClientFor, type ApiArgs } from './api-options.ts';
import { createPrinter, type Printer } from '../output/printer.ts';
import type { Terminal } from '../terminal.ts';

/** What a command on the things of one slice works with. */
export type ApiSession = Readonly<{
  call<T>(call: ApiCall): Promise<ApiAnswer<T>>;
  /** The answer as it came with `--json`, else as `write` writes it. */
  show<T>(answer: ApiAnswer<T>, write: (value: T) => void): void;
  print: Printer;
  now: Date;
}>;

export function openApiSession(
  terminal: Terminal,
  args: ApiArgs,
  slice: 'outbox' | 'jobs' | 'sagas' | 'workflows',
): ApiSession {
  const { call } = apiClientFor(terminal, args, ['api', 'v1', slice]);
  const print = createPrinter(terminal);
  return {
    call,
    show: ({ text, value }, write) => (args.json === true ? print.json(text) : write(value)),
    print,
    now: new Date(),
  };
}
