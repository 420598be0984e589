import { ask } from '../confirm.ts';
import { UsageError } from '../exit-code.ts';
import type { Terminal } from '../terminal.ts';
import { sliceCommand, type AddCommand, type Answered } from './api-command.ts';
import type { Input, Value, Values } from './define-command.ts';
import { requestOf, type Route } from './request-of.ts';

/** A command that shows one item with what is `[masked]` elsewhere. */
export type RevealCommand<Answer> = Readonly<{
  description: string;
  route: Route;
  inputs: readonly Input[];
  examples: readonly [string, ...string[]];
  timeoutMs?: number;
  print: (answer: Answer, about: Answered) => void;
}>;

const reason: Input = {
  flags: '--reason <text>',
  text: 'reason, for the audit log; asked for on a terminal',
};

export function revealCommand<Answer>(definition: RevealCommand<Answer>): AddCommand {
  const { description, route, examples, timeoutMs, print } = definition;
  const inputs = [...definition.inputs, reason];
  return sliceCommand(
    { name: 'reveal', description, route, inputs, examples },
    async (session, values, terminal) => {
      const given = await withReason(values, terminal);
      const answer = await session.call<Answer>({ ...requestOf(route, inputs, given), timeoutMs });
      session.show(answer, (value) => print(value, { ...session, status: answer.status, values: given }));
    },
  );
}

async function withReason(values: Values, terminal: Terminal): Promise<Values> {
  const why: Value = values['reason'] ?? (await askReason(terminal));
  if (typeof why !== 'string' || why.trim() === '') throw new UsageError('no reason given; pass --reason');
  return { ...values, reason: why };
}

async function askReason(terminal: Terminal): Promise<string> {
  if (terminal.stdin.isTTY !== true) throw new UsageError('not interactive; pass --reason');
  return ask(terminal, 'Reason, for the audit log:');
}
