import { apiClientFor, type ApiArgs } from '../api/api-options.ts';
import type { ApiAnswer, ApiCall } from '../api/api-client.ts';
import { SilentFailure } from '../exit-code.ts';
import { createPrinter, type Printer } from '../output/printer.ts';
import type { Terminal } from '../terminal.ts';

/** What a command on dead letters works with. */
export type DlqSession = Readonly<{
  call<T>(call: ApiCall): Promise<ApiAnswer<T>>;
  print: Printer;
  now: Date;
}>;

export function openDlqSession(terminal: Terminal, args: ApiArgs): DlqSession {
  const { call } = apiClientFor(terminal, args, ['api', 'v1', 'dlq']);
  return { call, print: createPrinter(terminal), now: new Date() };
}

/**
 * Asks once and shows the answer: as it came with `--json`, else as `show` writes it. The command fails, after
 * that, where the answer is a good one that tells of something bad.
 */
export async function callAndShow<T>(
  { terminal, args }: Readonly<{ terminal: Terminal; args: ApiArgs }>,
  call: ApiCall,
  show: (value: T, session: DlqSession) => void,
  isGood: (value: T) => boolean = () => true,
): Promise<void> {
  const session = openDlqSession(terminal, args);
  const { text, value } = await session.call<T>(call);
  if (args.json === true) session.print.json(text);
  else show(value, session);
  if (!isGood(value)) throw new SilentFailure();
}
