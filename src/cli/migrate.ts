import { Argument, type Command } from 'commander';
import {
  migrateDown,
  migrateUp,
  migrationStatus,
  plannedDown,
  type Migration,
  type MigrationStatus,
} from '../platform/postgres/migrate.ts';
import { lossesOf, type Loss, type Touched } from '../platform/postgres/migration-losses.ts';
import { confirm, requireTerminal } from './confirm.ts';
import { withExamples } from './examples.ts';
import { SilentFailure } from './exit-code.ts';
import { addMigratePlanCommand } from './migrate-plan.ts';
import { configFrom, withConfigOptions, type ConfigArgs } from './options.ts';
import { createPrinter, type Printer } from './output/printer.ts';
import { withProgress } from './output/progress.ts';
import type { Tone } from './output/render-table.ts';
import type { Terminal } from './terminal.ts';
import { wholeNumber } from './whole-number.ts';
import { withDatabase } from './with-database.ts';

type DownArgs = StatusArgs & Readonly<{ to: number; yes?: boolean }>;
type StatusArgs = ConfigArgs & Readonly<{ json?: boolean }>;

const tones: Readonly<Record<MigrationStatus['state'], Tone>> = {
  applied: 'good',
  pending: 'doubtful',
  changed: 'bad',
  unknown: 'doubtful',
};

/** Those of `migrationSources`, which would load the whole system. */
export const modules: readonly string[] = [
  'platform',
  'dlq',
  'outbox',
  'jobs',
  'saga',
  'access',
  'audit',
  'console',
];

export function addMigrateCommand(program: Command, terminal: Terminal): void {
  const print = createPrinter(terminal);
  const migrate = withExamples(
    program.command('migrate').description('database schema: plan, apply, roll back or list migrations'),
    'redrive migrate status --config config.yaml',
  );

  withExamples(
    withConfigOptions(migrate.command('up').description('apply pending migrations')).option(
      '--json',
      'print JSON',
    ),
    'redrive migrate up --config config.yaml',
  ).action(async (args: StatusArgs) => {
    const { migrationSources } = await import('../compose.ts');
    const isQuiet = args.json === true;
    const applied = await withDatabase(configFrom(args, {}, terminal), (db) =>
      withProgress(terminal, { label: 'applying migrations', isQuiet }, () =>
        migrateUp(db, migrationSources, (migration) => {
          if (!isQuiet) print.line(`applied ${nameOf(migration)}`);
        }),
      ),
    );
    if (isQuiet) print.json(JSON.stringify({ applied: applied.map(namesOf) }));
    else if (applied.length === 0) print.line('nothing to apply');
  });

  withExamples(
    withConfigOptions(migrate.command('down').description("roll back one module's migrations, newest first"))
      .addArgument(new Argument('<module>', 'module to roll back').choices(modules))
      .requiredOption(
        '--to <number>',
        'last migration to keep; 0 rolls back all and deletes their data',
        wholeNumber(0, 999),
      )
      .option('-y, --yes', 'do not ask for confirmation')
      .option('--json', 'print JSON'),
    'redrive migrate down dlq --to 6 --config config.yaml',
    'redrive migrate down dlq --to 6 --yes --config config.yaml',
  ).action((slice: string, args: DownArgs) => rollBack(terminal, slice, args));

  withExamples(
    withConfigOptions(
      migrate.command('status').description('list migrations; fails if one is pending or changed'),
    ).option('--json', 'print JSON'),
    'redrive migrate status --config config.yaml',
  ).action(async (args: StatusArgs) => {
    const { migrationSources } = await import('../compose.ts');
    const status = await withDatabase(configFrom(args, {}, terminal), (db) =>
      migrationStatus(db, migrationSources),
    );
    if (args.json === true) print.json(JSON.stringify(status, null, 2));
    else showStatus(print, status);
    if (status.some(({ state }) => state === 'pending' || state === 'changed')) throw new SilentFailure();
  });
  addMigratePlanCommand(migrate, terminal);
}

async function rollBack(terminal: Terminal, slice: string, args: DownArgs): Promise<void> {
  const print = createPrinter(terminal);
  const asJson = args.json === true;
  const { migrationSources } = await import('../compose.ts');
  const known = migrationSources.map((source) => source.slice);
  const done = await withDatabase(configFrom(args, {}, terminal), async (db) => {
    const target = { slice, to: args.to };
    const planned = await plannedDown(db, migrationSources, target);
    if (planned.length === 0) return [];
    if (args.yes !== true) {
      // The rehearsal takes locks, so it runs only if somebody can confirm.
      requireTerminal(terminal);
      for (const line of describeRollback(planned, await lossesOf(db, known, planned))) print.note(line);
      if (!(await confirm(terminal, 'Roll back?'))) {
        print.note('nothing was changed');
        throw new SilentFailure();
      }
    }
    return withProgress(terminal, { label: 'rolling back', isQuiet: asJson }, () =>
      migrateDown(db, migrationSources, target),
    );
  });
  if (asJson) return print.json(JSON.stringify({ rolled_back: done.map(namesOf) }));
  for (const migration of done) print.line(`rolled back ${nameOf(migration)}`);
  if (done.length === 0) print.line('nothing to roll back');
}

/** The data that would be lost, one line per table that is not empty. */
function describeRollback(
  planned: readonly Migration[],
  { losses, touched }: Awaited<ReturnType<typeof lossesOf>>,
): readonly string[] {
  const lost = losses.filter(({ rows }) => rows.count > 0);
  const count = planned.length === 1 ? '1 migration' : `${planned.length} migrations`;
  const verb = touched.some(({ changed }) => changed > 0) ? 'deletes or changes' : 'deletes';
  const what = lost.length + touched.length === 0 ? 'no data' : 'for good:';
  return [
    `rolling back ${count} (${planned.map(nameOf).join(', ')}) ${verb} ${what}`,
    ...lost.map(describeLoss),
    ...touched.map(describeTouched),
  ];
}

function describeLoss({ table, columns, rows: { count, isMore } }: Loss): string {
  const rows = `${isMore ? 'more than ' : ''}${rowsOf(count)}`;
  return columns === 'all' ? `  ${table}: ${rows}` : `  ${table}: ${columns.join(', ')} of ${rows}`;
}

function describeTouched({ table, deleted, changed }: Touched): string {
  const parts = [
    ...(deleted > 0 ? [`${rowsOf(deleted)} deleted`] : []),
    ...(changed > 0 ? [`${rowsOf(changed)} changed`] : []),
  ];
  return `  ${table}: ${parts.join(', ')}`;
}

function rowsOf(count: number): string {
  return `${count} ${count === 1 ? 'row' : 'rows'}`;
}

function showStatus(print: Printer, status: readonly MigrationStatus[]): void {
  print.table<MigrationStatus>(
    [
      {
        title: 'STATE',
        text: ({ state }) => state,
        tone: ({ state }) => tones[state],
      },
      { title: 'MIGRATION', text: nameOf },
      { title: 'APPLIED', text: ({ appliedAt }) => appliedAt?.toISOString() ?? '-' },
    ],
    status,
  );
}

/** As `redrive migrate status --json` names them. */
function namesOf({ slice, number, name }: Migration): object {
  return { slice, number, name };
}

function nameOf({ slice, number, name }: Readonly<{ slice: string; number: number; name: string }>): string {
  return `${slice}/${String(number).padStart(3, '0')} ${name}`;
}
