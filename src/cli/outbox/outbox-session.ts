import type { ApiCall } from '../api/api-client.ts';
import { apiClientFor, type ApiArgs } from '../api/api-options.ts';
import { createPrinter, type Printer } from '../output/printer.ts';
import type { Terminal } from '../terminal.ts';
import { postText } from './post-text.ts';

const root = ['api', 'v1', 'outbox'] as const;

/** A call with an order in it carries its body as text, and the order's key in a header. */
export type OutboxCall =
  | ApiCall
  | Readonly<{
      method: 'POST';
      path: readonly string[];
      headers: Readonly<Record<string, string>>;
      body: string;
    }>;

export type OutboxAnswer<T> = Readonly<{ text: string; value: T; isNew: boolean }>;

/** What a command on orders works with. */
export type OutboxSession = Readonly<{
  call<T>(call: OutboxCall): Promise<OutboxAnswer<T>>;
  /** The answer as it came with `--json`, else as `write` writes it. */
  show<T>(answer: OutboxAnswer<T>, write: (value: T) => void): void;
  print: Printer;
  now: Date;
}>;

export function openOutboxSession(terminal: Terminal, args: ApiArgs): OutboxSession {
  const client = apiClientFor(terminal, args, root);
  const print = createPrinter(terminal);
  return {
    async call<T>(call: OutboxCall): Promise<OutboxAnswer<T>> {
      if (!('headers' in call)) return { ...(await client.call<T>(call)), isNew: false };
      const { value, ...answer } = await postText(
        { terminal, args },
        { ...call, path: [...root, ...call.path] },
      );
      return { ...answer, value: value as T };
    },
    show: ({ text, value }, write) => (args.json === true ? print.json(text) : write(value)),
    print,
    now: new Date(),
  };
}
