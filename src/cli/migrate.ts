import type { Command } from 'commander';
import { loggerFor, migrationSources, openDatabase } from '../compose.ts';
import type { Database } from '../platform/postgres/database.ts';
import { migrateDown, migrateUp, migrationStatus } from '../platform/postgres/migrate.ts';
import { configFrom, withConfigOptions, type ConfigArgs } from './options.ts';

export function addMigrateCommand(program: Command): void {
  const migrate = program.command('migrate').description('the database schema: apply, take back, show');

  withConfigOptions(migrate.command('up').description('apply what is pending')).action(
    async (args: ConfigArgs) => {
      const applied = await withDatabase(args, (db) => migrateUp(db, migrationSources));
      for (const { slice, number, name } of applied) say(`applied ${slice}/${number} ${name}`);
      if (applied.length === 0) say('nothing to apply');
    },
  );

  withConfigOptions(migrate.command('down').description('take migrations of one slice back, newest first'))
    .argument('<slice>', 'platform, dlq, …')
    .requiredOption(
      '--to <number>',
      'the last migration that stays; 0 takes back all, and their data with them',
    )
    .action(async (slice: string, args: ConfigArgs & Readonly<{ to: string }>) => {
      if (!/^\d{1,3}$/.test(args.to)) throw new Error(`--to is not a migration's number: ${args.to}`);
      if (!migrationSources.some((source) => source.slice === slice))
        throw new Error(
          `unknown slice: ${slice} (known: ${migrationSources.map((source) => source.slice).join(', ')})`,
        );
      const reverted = await withDatabase(args, (db) =>
        migrateDown(db, migrationSources, { slice, to: Number(args.to) }),
      );
      for (const { number, name } of reverted) say(`took back ${slice}/${number} ${name}`);
      if (reverted.length === 0) say('nothing to take back');
    });

  withConfigOptions(migrate.command('status').description('show every migration'))
    .option('--json', 'as JSON')
    .action(async (args: ConfigArgs & Readonly<{ json?: boolean }>) => {
      const status = await withDatabase(args, (db) => migrationStatus(db, migrationSources));
      if (args.json === true) return say(JSON.stringify(status, null, 2));
      for (const { slice, number, name, state, appliedAt } of status)
        say(
          `${state.padEnd(8)} ${`${slice}/${String(number).padStart(3, '0')}`.padEnd(14)} ${name.padEnd(32)} ${appliedAt?.toISOString() ?? ''}`.trimEnd(),
        );
      if (status.some(({ state }) => state === 'pending' || state === 'changed')) process.exitCode = 1;
    });
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function withDatabase<T>(args: ConfigArgs, work: (db: Database) => Promise<T>): Promise<T> {
  const config = configFrom(args);
  const { database, db } = await openDatabase(config, loggerFor(config));
  try {
    return await work(db);
  } finally {
    await db.end();
    await database?.stop();
  }
}
