import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { readText } from '../json-input.ts';
import { numberColumn, optional, textColumn } from '../output/columns.ts';
import { showFacts, showJson, showRows } from '../output/facts.ts';
import type { Column } from '../output/render-table.ts';
import { rowsAs, sliceCommand } from '../slice/api-command.ts';
import { requestOf } from '../slice/request-of.ts';

type Workflow = Readonly<{
  name: string;
  step_count: number;
  step_names: readonly string[];
  hash: string;
  /** Older servers do not send the rest. */
  unfinished?: number;
  needs_attention?: number;
  counts_are_minimum?: true;
}>;

type DefinedWorkflow = Workflow &
  Readonly<{
    definition: unknown;
    definitions?: readonly Definition[];
  }>;

type Definition = Readonly<{
  hash: string;
  is_current: boolean;
  registered_at: string | null;
  unfinished: number;
  needs_attention: number;
}>;

/** Older servers send no warnings. */
type Registered = Pick<Workflow, 'name' | 'step_count' | 'hash'> & Readonly<{ warnings?: readonly string[] }>;

const columns: readonly Column<Workflow>[] = [
  textColumn('NAME', ({ name }) => name),
  textColumn('STEPS', ({ step_names }) => step_names.join(', '), 12),
  textColumn('HASH', ({ hash }) => hash.slice(0, 'sha256:'.length + 12)),
  optional(
    numberColumn('UNFINISHED', ({ unfinished, counts_are_minimum }) =>
      counts_are_minimum === true ? `>= ${unfinished}` : (unfinished ?? null),
    ),
  ),
  optional(numberColumn('NEED ATTENTION', ({ needs_attention }) => needs_attention ?? null)),
];

const definitionColumns: readonly Column<Definition>[] = [
  textColumn('DEFINITION', ({ hash, is_current }) => (is_current ? `${hash} (current)` : hash)),
  textColumn('REGISTERED', ({ registered_at }) => registered_at),
  numberColumn('UNFINISHED', ({ unfinished }) => unfinished),
  numberColumn('NEED ATTENTION', ({ needs_attention }) => needs_attention),
];

export const workflows = sliceCommand(
  {
    name: 'workflows',
    route: 'GET /api/v1/workflows',
    isWatchable: true,
    description: 'list workflows, or show one',
    inputs: [{ flags: '[name]', text: 'workflow to show' }],
    examples: ['redrive saga workflows', 'redrive saga workflows place-order'],
  },
  async (session, values) => {
    if (values['name'] !== undefined) {
      const call = requestOf('GET /api/v1/workflows/{name}', [], values);
      const answer = await session.call<DefinedWorkflow>(call);
      return session.show(answer, (workflow) => printWorkflow(workflow, session));
    }
    const answer = await session.call<Readonly<Record<string, unknown>>>(
      requestOf('GET /api/v1/workflows', [], values),
    );
    session.show(answer, (all) => rowsAs('workflows', columns, 'no workflows')(all, session));
  },
);

function printWorkflow(
  { name, step_names, hash, definition, definitions = [] }: DefinedWorkflow,
  { print }: ApiSession,
): void {
  showFacts(print, [
    ['name', name],
    ['steps', step_names.join(', ')],
    ['hash', hash],
  ]);
  showRows(print, 'definitions', definitionColumns, definitions);
  showJson(print, 'definition', definition);
}

export const register = sliceCommand(
  {
    name: 'register',
    route: 'POST /api/v1/workflows',
    description: 'register a workflow; new sagas use it, running sagas keep theirs',
    inputs: [{ flags: '<file>', text: 'workflow in YAML or JSON; - is standard input' }],
    examples: ['redrive saga register workflows/place-order.yaml'],
  },
  async (session, { file }, terminal) => {
    const from = { text: undefined, file: String(file), what: 'the workflow', options: 'a file' };
    const input = { workflow_yaml: await readText(terminal, from) };
    const answer = await session.call<Registered>({
      ...requestOf('POST /api/v1/workflows', [], {}),
      input,
    });
    session.show(answer, ({ name, step_count, hash, warnings = [] }) => {
      const steps = step_count === 1 ? '1 step' : `${step_count} steps`;
      session.print.line(`${escapeText(name)}: ${steps}, ${hash}`);
      for (const warning of warnings) session.print.note(`warning: ${escapeText(warning)}`);
    });
  },
);
