import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { readText } from '../json-input.ts';
import { textColumn } from '../output/columns.ts';
import { showFacts, showJson } from '../output/facts.ts';
import type { Column } from '../output/render-table.ts';
import { rowsAs, sliceCommand } from '../slice/api-command.ts';
import { requestOf } from '../slice/request-of.ts';

type Workflow = Readonly<{
  name: string;
  step_count: number;
  step_names: readonly string[];
  hash: string;
}>;

/** Older servers send no warnings. */
type Registered = Omit<Workflow, 'step_names'> & Readonly<{ warnings?: readonly string[] }>;

const columns: readonly Column<Workflow>[] = [
  textColumn('NAME', ({ name }) => name),
  textColumn('STEPS', ({ step_names }) => step_names.join(', '), 12),
  textColumn('HASH', ({ hash }) => hash.slice(0, 'sha256:'.length + 12)),
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
      const answer = await session.call<Workflow & Readonly<{ definition: unknown }>>(call);
      return session.show(answer, (workflow) => printWorkflow(workflow, session));
    }
    const answer = await session.call<Readonly<Record<string, unknown>>>(
      requestOf('GET /api/v1/workflows', [], values),
    );
    session.show(answer, (all) => rowsAs('workflows', columns, 'no workflows')(all, session));
  },
);

function printWorkflow(
  { name, step_names, hash, definition }: Workflow & Readonly<{ definition: unknown }>,
  { print }: ApiSession,
): void {
  showFacts(print, [
    ['name', name],
    ['steps', step_names.join(', ')],
    ['hash', hash],
  ]);
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
