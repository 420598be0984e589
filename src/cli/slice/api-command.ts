import type { Command } from 'commander';
import type { ApiArgs } from '../api/api-options.ts';
import { withApiOptions } from '../api/api-options.ts';
import { openApiSession, type ApiSession } from '../api/api-session.ts';
import { SilentFailure } from '../exit-code.ts';
import { withProgress } from '../output/progress.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { defineCommand, valuesOf, type CommandDefinition, type Values } from './define-command.ts';
import { withWholeIds } from './item-id.ts';
import { jsonInputs, withJson, type JsonField } from './json-field.ts';
import { requestOf, type Route } from './request-of.ts';
import { watch, watchInput } from './watch.ts';

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
    sliceCommand(
      { ...definition, inputs: [...inputs, ...jsonInputs(json)], isWatchable: route.startsWith('GET ') },
      async (session, values) => {
        await before?.(session, values, terminal);
        const request = { ...requestOf(route, inputs, values), timeoutMs };
        const answer = await session.call<Answer>(await withJson(request, json, values, terminal));
        session.show(answer, (value) => print(value, { ...session, status: answer.status, values }));
        if (isFailure(answer.value)) throw new SilentFailure();
      },
    )(slice, terminal);
}

/** A command with an action of its own on a running server. */
export function sliceCommand(
  definition: CommandDefinition,
  run: (session: ApiSession, values: Values, terminal: Terminal) => Promise<void>,
): AddCommand {
  return (slice, terminal) => {
    const inputs = definition.inputs ?? [];
    const allInputs = definition.isWatchable === true ? [...inputs, watchInput] : inputs;
    const command = withApiOptions(defineCommand(slice, { ...definition, inputs: allInputs }));
    describeJson(command, definition.route);
    command.action(async () => {
      const args = command.opts<ApiArgs>();
      const asJson = args.json === true;
      const session = openApiSession(terminal, args);
      const waiting = definition.hasOwnProgress === true ? session : showingWaits(session, terminal, asJson);
      const values = await withWholeIds(waiting, inputs, valuesOf(command));
      const { watch: seconds } = values;
      if (seconds === undefined) return run(waiting, values, terminal);
      await watch(terminal, { seconds, asJson }, (screen) =>
        run(openApiSession(screen, args), values, screen),
      );
    });
  };
}

function describeJson(command: Command, route: Route | undefined): void {
  const option = command.options.find(({ long }) => long === '--json');
  if (option !== undefined && route !== undefined) option.description = `print the JSON answer of ${route}`;
}

/** Says so if the server takes long to answer. */
function showingWaits(session: ApiSession, terminal: Terminal, isQuiet: boolean): ApiSession {
  const options = { label: 'waiting for the server', isQuiet };
  return { ...session, call: (call) => withProgress(terminal, options, () => session.call(call)) };
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
