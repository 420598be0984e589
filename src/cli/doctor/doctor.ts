import type { Command } from 'commander';
import type { Config } from '../../config/config.ts';
import { ConfigError } from '../../config/config-error.ts';
import { withExamples } from '../examples.ts';
import { exitCodes, SilentFailure } from '../exit-code.ts';
import { configFrom, withConfigOptions, type ConfigArgs } from '../options.ts';
import { escapeText } from '../../kernel/escape-text.ts';
import { createPrinter, type Printer } from '../output/printer.ts';
import type { Tone } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { examineDisk } from './checks/disk.ts';
import { examineEncryption } from './checks/encryption.ts';
import { examineExposure } from './checks/exposure.ts';
import { examineIssuers } from './checks/issuers.ts';
import { examinePlainSecrets } from './checks/plain-secrets.ts';
import { examineSecretFiles } from './checks/secret-files.ts';
import { examineTargets } from './checks/targets.ts';
import { attempt, ok, problem, warning, type Finding } from './finding.ts';
import { showPlan, withPlanOptions, type PlanArgs } from './show-plan.ts';

type DoctorArgs = ConfigArgs & PlanArgs & Readonly<{ json?: boolean }>;

const tones: Readonly<Record<Finding['status'], Tone>> = {
  ok: 'good',
  warning: 'doubtful',
  problem: 'bad',
  skipped: 'faint',
};

/** Its own, so that a script can tell a warning from a problem. */
const doctorCodes = { warning: 1, problem: 2 } as const;

export function addDoctorCommand(program: Command, terminal: Terminal): void {
  withExamples(
    withPlanOptions(
      withConfigOptions(
        program
          .command('doctor')
          .description('check configuration, database and Kafka, and suggest fixes; changes nothing'),
      ).option('--json', 'print JSON'),
    ),
    'redrive doctor --config config.yaml',
    'redrive doctor --plan --replicas 3 --orders 2000000 --config config.yaml',
  ).action(async (args: DoctorArgs) => {
    const print = createPrinter(terminal);
    if (args.plan === true) return showPlan(print, configFrom(args, {}, terminal), args);
    const findings: Finding[] = [];
    for await (const finding of examine(terminal, args)) {
      findings.push(finding);
      if (args.json !== true) showFinding(print, finding);
    }
    const status = worstOf(findings);
    if (args.json === true) print.json(JSON.stringify({ status, checks: findings }, null, 2));
    else print.note(summaryOf(findings));
    if (findings.some(isBadConfiguration)) throw new SilentFailure(exitCodes.badConfig);
    if (status !== 'ok') throw new SilentFailure(doctorCodes[status]);
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
    file ? `${file} and environment variables` : 'no config file; using defaults and environment variables',
  );
  for (const found of config.warnings)
    yield warning('configuration', found, 'correct it, unless it is intended');
  yield examinePlainSecrets(config);
  yield examineSecretFiles(config);
  yield examineEncryption(config);
  yield examineExposure(config);
  yield await attempt('disk', () => examineDisk(config));
  yield await attempt('issuer', () => examineIssuers(config));
  const { examineDatabase } = await import('./examine-database.ts');
  yield* examineDatabase(config);
  const { examineBroker } = await import('./examine-broker.ts');
  yield* examineBroker(config);
  yield await attempt('destinations', () => examineTargets(config));
}

/** `serve` fails with the same exit code. */
function isBadConfiguration({ check, status }: Finding): boolean {
  return check === 'configuration' && status === 'problem';
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
