import type { Command } from 'commander';
import {
  migrateDown,
  migrateUp,
  migrationStatus,
  type MigrationStatus,
} from '../platform/postgres/migrate.ts';
import { withExamples } from './examples.ts';
import { SilentFailure, UsageError } from './exit-code.ts';
import { configFrom, withConfigOptions, type ConfigArgs } from './options.ts';
import { createPrinter, type Printer, type Tone } from './output/printer.ts';
import type { Terminal } from './terminal.ts';
import { wholeNumber } from './whole-number.ts';
import { withDatabase } from './with-database.ts';

type DownArgs = ConfigArgs & Readonly<{ to: number }>;
type StatusArgs = ConfigArgs & Readonly<{ json?: boolean }>;

const tones: Readonly<Record<MigrationStatus['state'], Tone>> = {
  applied: 'good',
  pending: 'doubtful',
  changed: 'bad',
  unknown: 'doubtful',
};

export function addMigrateCommand(program: Command, terminal: Terminal): void {
  const print = createPrinter(terminal);
  const migrate = withExamples(
    program.command('migrate').description('the database schema: apply, take back, show'),
    'redrive migrate status --config config.yaml',
  );

  withExamples(
    withConfigOptions(migrate.command('up').description('apply what is pending')),
    'redrive migrate up --config config.yaml',
  ).action(async (args: ConfigArgs) => {
    const { migrationSources } = await import('../compose.ts');
    const applied = await withDatabase(configFrom(args, {}, terminal), (db) =>
      migrateUp(db, migrationSources),
    );
    for (const migration of applied) print.line(`applied ${nameOf(migration)}`);
    if (applied.length === 0) print.line('nothing to apply');
  });

  withExamples(
    withConfigOptions(migrate.command('down').description('take migrations of one slice back, newest first'))
      .argument('<slice>', 'platform, dlq, …')
      .requiredOption(
        '--to <number>',
        'the last migration that stays; 0 takes back all, and their data with them',
        wholeNumber(0, 999),
      ),
    'redrive migrate down dlq --to 6 --config config.yaml',
  ).action(async (slice: string, args: DownArgs) => {
    const { migrationSources } = await import('../compose.ts');
    const known = migrationSources.map((source) => source.slice);
    if (!known.includes(slice)) throw new UsageError(`unknown slice: ${slice} (known: ${known.join(', ')})`);
    const reverted = await withDatabase(configFrom(args, {}, terminal), (db) =>
      migrateDown(db, migrationSources, { slice, to: args.to }),
    );
    for (const migration of reverted) print.line(`took back ${nameOf(migration)}`);
    if (reverted.length === 0) print.line('nothing to take back');
  });

  withExamples(
    withConfigOptions(
      migrate.command('status').description('show every migration; fails where one is pending or changed'),
    ).option('--json', 'as JSON'),
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
}

function showStatus(print: Printer, status: readonly MigrationStatus[]): void {
  print.table<MigrationStatus>(
    [
      {
        title: 'STATE',
        text: ({ state }) => state,
        paint: (cell, { state }) => print.paint(tones[state], cell),
      },
      { title: 'MIGRATION', text: nameOf },
      { title: 'APPLIED', text: ({ appliedAt }) => appliedAt?.toISOString() ?? '-' },
    ],
    status,
  );
}

function nameOf({ slice, number, name }: Readonly<{ slice: string; number: number; name: string }>): string {
  return `${slice}/${String(number).padStart(3, '0')} ${name}`;
}
