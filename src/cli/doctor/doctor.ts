import type { Command } from 'commander';
import type { Config } from '../../config.ts';
import { ConfigError } from '../../config/config-error.ts';
import { withExamples } from '../examples.ts';
import { SilentFailure } from '../exit-code.ts';
import { configFrom, withConfigOptions, type ConfigArgs } from '../options.ts';
import { escapeText } from '../output/escape-text.ts';
import { createPrinter, type Printer, type Tone } from '../output/printer.ts';
import type { Terminal } from '../terminal.ts';
import { ok, problem, warning, type Finding } from './finding.ts';

type DoctorArgs = ConfigArgs & Readonly<{ json?: boolean }>;

const tones: Readonly<Record<Finding['status'], Tone>> = {
  ok: 'good',
  warning: 'doubtful',
  problem: 'bad',
  skipped: 'faint',
};

export function addDoctorCommand(program: Command, terminal: Terminal): void {
  withExamples(
    withConfigOptions(
      program
        .command('doctor')
        .description(
          'check configuration, database and Kafka: what is wrong and what to do; changes nothing',
        ),
    ).option('--json', 'as JSON'),
    'redrive doctor --config config.yaml',
  ).action(async (args: DoctorArgs) => {
    const print = createPrinter(terminal);
    const findings: Finding[] = [];
    for await (const finding of examine(terminal, args)) {
      findings.push(finding);
      if (args.json !== true) showFinding(print, finding);
    }
    const status = worstOf(findings);
    if (args.json === true) print.json(JSON.stringify({ status, checks: findings }, null, 2));
    else print.note(summaryOf(findings));
    if (status === 'problem') throw new SilentFailure();
  });
}

async function* examine(terminal: Terminal, args: DoctorArgs): AsyncGenerator<Finding> {
  const config = readConfig(terminal, args);
  if (config instanceof ConfigError) {
    for (const { path, reason, source, suggestion } of config.problems)
      yield problem(
        'configuration',
        `${path}: ${reason}${source === undefined ? '' : ` (${source})`}`,
        suggestion === undefined ? 'correct it' : `did you mean ${suggestion}?`,
      );
    return;
  }
  const file = args.config ?? terminal.env['CONFIG_PATH'];
  yield ok(
    'configuration',
    file ? `${file} and the environment` : 'no file is named: defaults and the environment',
  );
  for (const found of config.warnings) yield warning('configuration', found, 'remove or correct it');
  const { examineDatabase } = await import('./examine-database.ts');
  yield* examineDatabase(config);
  const { examineBroker } = await import('./examine-broker.ts');
  yield* examineBroker(config);
}

function readConfig(terminal: Terminal, args: DoctorArgs): Config | ConfigError {
  try {
    return configFrom(args, {}, terminal);
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

function showFinding(print: Printer, { check, status, found, advice }: Finding): void {
  print.line(`${print.paint(tones[status], status.padEnd(9))}${check.padEnd(15)}${escapeText(found)}`);
  if (advice !== undefined) print.line(`${' '.repeat(24)}-> ${escapeText(advice)}`);
}

function worstOf(findings: readonly Finding[]): 'ok' | 'warning' | 'problem' {
  const has = (status: Finding['status']): boolean => findings.some((finding) => finding.status === status);
  return has('problem') ? 'problem' : has('warning') ? 'warning' : 'ok';
}

function summaryOf(findings: readonly Finding[]): string {
  const count = (status: Finding['status'], one: string): string => {
    const found = findings.filter((finding) => finding.status === status).length;
    return `${found} ${one}${found === 1 ? '' : 's'}`;
  };
  return `${count('problem', 'problem')}, ${count('warning', 'warning')}`;
}
