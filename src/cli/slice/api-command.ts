import type { Command } from 'commander';
import type { ApiArgs } from '../api/api-options.ts';
import { withApiOptions } from '../api/api-options.ts';
import { openApiSession, type ApiSession } from '../api/api-session.ts';
import { SilentFailure } from '../exit-code.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { defineCommand, valuesOf, type CommandDefinition, type Values } from './define-command.ts';
import { withWholeIds } from './item-id.ts';
import { jsonInputs, withJson, type JsonField } from './json-field.ts';
import { requestOf, type Route } from './request-of.ts';

/** Adds a command below the slice's own. */
export type AddCommand = (slice: Command, terminal: Terminal) => void;

/** What `print` may need besides the answer. */
export type Answered = ApiSession & Readonly<{ status: number; values: Values }>;

/** A command that makes one API call and prints the answer. */
export type ApiCommand<Answer> = CommandDefinition &
  Readonly<{
    route: Route;
    /** JSON that the caller writes and that is sent unchanged. */
    json?: JsonField;
    timeoutMs?: number;
    /** Asks for confirmation, or throws. */
    before?: (session: ApiSession, values: Values, terminal: Terminal) => Promise<void>;
    print: (answer: Answer, about: Answered) => void;
    /** The command fails although the call succeeded. */
    isFailure?: (answer: Answer) => boolean;
  }>;

export function apiCommand<Answer>(definition: ApiCommand<Answer>): AddCommand {
  const { route, json, timeoutMs, before, print, isFailure = () => false } = definition;
  const inputs = definition.inputs ?? [];
  return (slice, terminal) =>
    sliceCommand({ ...definition, inputs: [...inputs, ...jsonInputs(json)] }, async (session, values) => {
      await before?.(session, values, terminal);
      const request = { ...requestOf(route, inputs, values), timeoutMs };
      const answer = await session.call<Answer>(await withJson(request, json, values, terminal));
      session.show(answer, (value) => print(value, { ...session, status: answer.status, values }));
      if (isFailure(answer.value)) throw new SilentFailure();
    })(slice, terminal);
}

/** A command with an action of its own on a running server. */
export function sliceCommand(
  definition: CommandDefinition,
  run: (session: ApiSession, values: Values, terminal: Terminal) => Promise<void>,
): AddCommand {
  return (slice, terminal) => {
    const command = withApiOptions(defineCommand(slice, definition));
    command.action(async () => {
      const session = openApiSession(terminal, command.opts<ApiArgs>());
      const values = await withWholeIds(session, definition.inputs ?? [], valuesOf(command));
      await run(session, values, terminal);
    });
  };
}

/** Prints the rows in the answer's field `key` as a table, or `none` if there are no rows. */
export function rowsAs<Row>(key: string, columns: readonly Column<Row>[], none: string) {
  return (answer: Readonly<Record<string, unknown>>, { print }: ApiSession): void => {
    const rows = answer[key] as readonly Row[];
    if (rows.length === 0) return print.note(none);
    print.table(columns, rows);
    if (answer['truncated'] === true) print.note(`only the first ${rows.length} ${key} are shown`);
  };
}
