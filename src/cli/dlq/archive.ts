import type { Command } from 'commander';
import { AppError, codeOf } from '../../kernel/errors.ts';
import { withExamples } from '../examples.ts';
import { UsageError } from '../exit-code.ts';
import { configFrom, withConfigOptions, type ConfigArgs } from '../options.ts';
import { createPrinter } from '../output/printer.ts';
import { withProgress } from '../output/progress.ts';
import type { Terminal } from '../terminal.ts';
import { wholeNumber } from '../whole-number.ts';
import { withDatabase } from '../with-database.ts';

type ArchiveArgs = ConfigArgs & Readonly<{ retentionDays?: number; purgeDays?: number; json?: boolean }>;

const maxDays = 36_500;
/** SQLSTATE: no such schema, function or table. */
const missing: ReadonlySet<string> = new Set(['3F000', '42883', '42P01']);

export function addArchiveCommand(dlq: Command, terminal: Terminal): void {
  withExamples(
    withConfigOptions(
      dlq
        .command('archive')
        .description(
          'move old RESOLVED and DEAD messages to the archive, and delete old messages from the archive',
        ),
    )
      .option(
        '--retention-days <number>',
        'archive messages unchanged for this long (default: dlq.archive.retention_days)',
        wholeNumber(1, maxDays),
      )
      .option(
        '--purge-days <number>',
        'delete archived messages unchanged for this long (default: dlq.archive.purge_days)',
        wholeNumber(1, maxDays),
      )
      .option('--json', 'print the counts as JSON'),
    'redrive dlq archive --config config.yaml',
    'redrive dlq archive --retention-days 7 --purge-days 90',
  ).action((args: ArchiveArgs) => archive(terminal, args));
}

async function archive(terminal: Terminal, args: ArchiveArgs): Promise<void> {
  const config = configFrom(args, {}, terminal);
  const retentionDays = args.retentionDays ?? config.dlq.archive.retentionDays;
  const purgeDays = args.purgeDays ?? config.dlq.archive.purgeDays;
  if (purgeDays < retentionDays)
    throw new UsageError(
      `--purge-days (${purgeDays}) must not be less than --retention-days (${retentionDays})`,
    );
  const { archiveMessages, purgeArchive } = await import('../../compose.ts');
  const isQuiet = args.json === true;
  const { archived, purged } = await withDatabase(config, (db) =>
    migrated(async () => ({
      archived: await withProgress(terminal, { label: 'archiving', isQuiet }, () =>
        archiveMessages(db, retentionDays),
      ),
      purged: await withProgress(terminal, { label: 'purging', isQuiet }, () => purgeArchive(db, purgeDays)),
    })),
  );
  const print = createPrinter(terminal);
  if (args.json === true) return print.json(JSON.stringify({ archived, purged }));
  print.line(
    `archived ${archived} (unchanged for ${retentionDays} days), purged ${purged} (unchanged for ${purgeDays} days)`,
  );
}

/** Explains a missing schema, table or procedure. */
export async function migrated<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw missing.has(codeOf(error) ?? '') ? notMigrated(error) : error;
  }
}

function notMigrated(cause: unknown): AppError {
  return new AppError(
    'SYS_PLATFORM_SCHEMA_OUTDATED',
    'internal',
    'the database has no archive: run `redrive migrate up`',
    { cause },
  );
}
