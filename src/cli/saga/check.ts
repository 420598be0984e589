import type { Command } from 'commander';
import type { CheckedPoint, CheckedUndo, CheckedWorkflow } from '../../compose.ts';
import { withExamples } from '../examples.ts';
import { SilentFailure } from '../exit-code.ts';
import { readText } from '../json-input.ts';
import { configFrom } from '../options.ts';
import { escapeText } from '../../kernel/escape-text.ts';
import { createPrinter, type Printer } from '../output/printer.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';

type CheckArgs = Readonly<{ config?: string; json?: boolean }>;
type Services = ReturnType<typeof configFrom>['services'];
type Flaw = Extract<CheckedWorkflow, { valid: false }>['flaws'][number];

export function addCheckCommand(saga: Command, terminal: Terminal): void {
  withExamples(
    saga
      .command('check')
      .description('validate a workflow and list every failure point with its compensation')
      .argument('<file>', 'workflow in YAML or JSON; - is standard input')
      .option('-c, --config <file>', 'configuration file with the services (env: CONFIG_PATH)')
      .option('--json', 'print JSON'),
    'redrive saga check workflows/place-order.yaml',
    'redrive saga check workflows/place-order.yaml --config config.yaml',
  ).action((file: string, args: CheckArgs) => checkFile(terminal, file, args));
}

async function checkFile(terminal: Terminal, file: string, args: CheckArgs): Promise<void> {
  const print = createPrinter(terminal);
  const text = await readText(terminal, { text: undefined, file, what: 'the workflow', options: 'a file' });
  const services = servicesFrom(terminal, args);
  const { checkWorkflow } = await import('../../compose.ts');
  const checked = await checkWorkflow(text, services);
  if (args.json === true) print.json(JSON.stringify(checked, null, 2));
  else if (checked.valid) showPoints(print, checked, services);
  else showFlaws(print, checked.flaws);
  if (!checked.valid) throw new SilentFailure();
}

/** The configured services; null without a configuration file. */
function servicesFrom(terminal: Terminal, args: CheckArgs): Services | null {
  if (args.config === undefined && !terminal.env['CONFIG_PATH']) return null;
  return configFrom(args, {}, terminal).services;
}

const flawColumns: readonly Column<Flaw>[] = [
  { title: 'STEP', text: ({ step }) => step ?? '-' },
  { title: 'FIELD', text: ({ field }) => field || '-' },
  { title: 'ERROR', text: ({ message }) => message },
];

function showFlaws(print: Printer, flaws: readonly Flaw[]): void {
  print.table(flawColumns, flaws);
  print.note(flaws.length === 1 ? '1 error' : `${flaws.length} errors`);
}

const whens = { refused: 'is refused', in_doubt: 'is in doubt', aborted: 'is aborted' } as const;

function showPoints(
  print: Printer,
  { name, hash, step_count, failure_points, unchecked }: Extract<CheckedWorkflow, { valid: true }>,
  services: Services | null,
): void {
  print.line(`${escapeText(name)}: ${step_count === 1 ? '1 step' : `${step_count} steps`}, ${hash}`);
  print.line('');
  print.table<CheckedPoint>(
    [
      { title: 'STEP', text: ({ step }) => step ?? '(before the first)' },
      { title: 'WHEN IT', text: ({ failure }) => whens[failure] },
      {
        title: 'ENDS',
        text: ({ ends, person }) => (person === null ? ends.join(' or ') : 'needs attention'),
        tone: ({ person }) => (person === null ? undefined : 'doubtful'),
      },
      { title: 'AFTER', text: afterOf },
    ],
    failure_points,
  );
  print.note('');
  print.note(
    'Aborted: the saga is cancelled, compensated or past its deadline while the step runs; the step finishes first.',
  );
  print.note(
    'An undo that is refused, or that fails for longer than undo_for (default 1d), needs attention too.',
  );
  if (services === null) print.note('Services were not checked: no --config.');
  for (const { service, reason } of unchecked)
    print.note(`Methods of ${service} were not checked: ${escapeText(reason)}`);
}

function afterOf({ undo, person }: CheckedPoint): string {
  const sequence = undo.map(undoText).join(', ');
  if (person === null) return sequence === '' ? 'nothing to undo' : sequence;
  // The sequence itself shows which undo needs attention.
  if (person.op === 'compensate') return sequence;
  return sequence === '' ? person.why : `${person.why}; if it was not done: ${sequence}`;
}

function undoText(undo: CheckedUndo): string {
  switch (undo.does) {
    case 'call': {
      const without = undo.left_out.length === 0 ? '' : ` without ${undo.left_out.join(', ')}`;
      return `undo ${undo.step} (${undo.method}${without})`;
    }
    case 'skip':
      return `skip ${undo.step}`;
    case 'ask':
      return `undo ${undo.step} manually (${undo.why})`;
  }
}
