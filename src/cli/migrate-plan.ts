import type { Command } from 'commander';
import {
  planMigrations,
  type PlannedLock,
  type PlannedMigration,
} from '../platform/postgres/migration-plan/plan-migrations.ts';
import { withExamples } from './examples.ts';
import { configFrom, withConfigOptions, type ConfigArgs } from './options.ts';
import { createPrinter, type Printer } from './output/printer.ts';
import type { Terminal } from './terminal.ts';
import { withDatabase } from './with-database.ts';

type PlanArgs = ConfigArgs & Readonly<{ json?: boolean }>;

export function addMigratePlanCommand(migrate: Command, terminal: Terminal): void {
  withExamples(
    withConfigOptions(
      migrate
        .command('plan')
        .description(
          'list pending migrations, the tables that they lock, and for about how long; changes nothing',
        ),
    ).option('--json', 'print JSON'),
    'redrive migrate plan --config config.yaml',
  ).action(async (args: PlanArgs) => {
    const print = createPrinter(terminal);
    const { migrationSources } = await import('../compose.ts');
    const planned = await withDatabase(configFrom(args, {}, terminal), (db) =>
      planMigrations(db, migrationSources),
    );
    if (args.json === true) print.json(JSON.stringify(planned, null, 2));
    else if (planned.length === 0) print.line('nothing to apply');
    else showPlan(print, planned);
  });
}

type Row = Readonly<{ migration: PlannedMigration; lock: PlannedLock | undefined }>;

function showPlan(print: Printer, planned: readonly PlannedMigration[]): void {
  const rows = planned.flatMap((migration): readonly Row[] =>
    migration.locks.length === 0
      ? [{ migration, lock: undefined }]
      : migration.locks.map((lock) => ({ migration, lock })),
  );
  print.table<Row>(
    [
      { title: 'MIGRATION', text: ({ migration }) => nameOf(migration) },
      { title: 'TABLE', text: ({ lock }) => lock?.table ?? '-' },
      { title: 'LOCK', text: ({ lock }) => lock?.mode ?? '-' },
      { title: 'BLOCKS', text: ({ lock }) => lock?.blocks ?? 'nobody' },
      { title: 'ROWS', text: ({ lock }) => (lock === undefined ? '-' : (lock.rows ?? 'unknown').toString()) },
      { title: 'ABOUT', text: ({ migration }) => about(migration.seconds) },
    ],
    rows,
  );
  for (const migration of planned.filter(({ calls }) => calls.length > 0))
    print.note(`${nameOf(migration)} calls ${migration.calls.join(', ')}, whose locks are not listed`);
  const seconds = planned.reduce((sum, one) => sum + one.seconds, 0);
  print.note(
    `${planned.length} pending, about ${about(seconds)} in all; each migration holds its locks until it commits`,
  );
}

function about(seconds: number): string {
  if (seconds < 1) return '< 1 s';
  return seconds < 120 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`;
}

function nameOf({ slice, number, name }: PlannedMigration): string {
  return `${slice}/${String(number).padStart(3, '0')} ${name}`;
}
