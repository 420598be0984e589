import type { Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { openApiSession } from '../api/api-session.ts';
import { withExamples } from '../examples.ts';
import { readText } from '../json-input.ts';
import { escapeText } from '../output/escape-text.ts';
import { showFacts, showJson } from '../output/facts.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';

type Workflow = Readonly<{
  name: string;
  step_count: number;
  step_names: readonly string[];
  hash: string;
}>;

export function addWorkflowCommands(saga: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(
      saga.command('workflows').description('the workflows that sagas can be started of, or one of them'),
    ).argument('[name]', 'one with its definition'),
    'redrive saga workflows',
    'redrive saga workflows place-order',
  ).action(async (name: string | undefined, args: ApiArgs) => {
    if (name === undefined) await listWorkflows(terminal, args);
    else await showWorkflow(terminal, name, args);
  });

  withExamples(
    withApiOptions(
      saga.command('register').description('make a workflow the one that new sagas begin with'),
    ).argument('<file>', 'the workflow, in YAML or JSON; - is standard input'),
    'redrive saga register workflows/place-order.yaml',
  ).action((file: string, args: ApiArgs) => register(terminal, file, args));
}

async function listWorkflows(terminal: Terminal, args: ApiArgs): Promise<void> {
  const session = openApiSession(terminal, args, 'workflows');
  const { print } = session;
  const answer = await session.call<Readonly<{ workflows: readonly Workflow[] }>>({ path: [] });
  const columns: readonly Column<Workflow>[] = [
    { title: 'NAME', text: ({ name }) => name },
    { title: 'STEPS', text: ({ step_names }) => step_names.join(', '), minWidth: 12 },
    { title: 'HASH', text: ({ hash }) => hash.slice(0, 'sha256:'.length + 12) },
  ];
  session.show(answer, ({ workflows }) => {
    if (workflows.length === 0) print.note('no workflows');
    else print.table(columns, workflows);
  });
}

async function showWorkflow(terminal: Terminal, name: string, args: ApiArgs): Promise<void> {
  const session = openApiSession(terminal, args, 'workflows');
  const { print } = session;
  const answer = await session.call<Workflow & Readonly<{ definition: unknown }>>({ path: [name] });
  session.show(answer, (workflow) => {
    showFacts(print, [
      ['name', workflow.name],
      ['steps', workflow.step_names.join(', ')],
      ['hash', workflow.hash],
    ]);
    showJson(print, 'definition', workflow.definition);
  });
}

async function register(terminal: Terminal, file: string, args: ApiArgs): Promise<void> {
  const text = await readText(terminal, { text: undefined, file, what: 'the workflow', options: 'a file' });
  const session = openApiSession(terminal, args, 'workflows');
  const answer = await session.call<Workflow>({ method: 'POST', path: [], body: { workflow_yaml: text } });
  session.show(answer, ({ name, step_count, hash }) =>
    session.print.line(
      `${escapeText(name)}: ${step_count === 1 ? '1 step' : `${step_count} steps`}, ${hash}`,
    ),
  );
}
