import type { Command } from 'commander';
import { withExamples } from '../examples.ts';
import { configFrom, withConfigOptions, type ConfigArgs } from '../options.ts';
import { numberColumn, textColumn } from '../output/columns.ts';
import { createPrinter } from '../output/printer.ts';
import { withProgress } from '../output/progress.ts';
import type { Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { migrated } from './archive.ts';

type RecountArgs = ConfigArgs & Readonly<{ json?: boolean }>;

export function addRecountCommand(dlq: Command, terminal: Terminal): void {
  withExamples(
    withConfigOptions(
      dlq.command('recount').description("count all messages and correct the topics' stored counts"),
    ).option('--json', 'print the corrections as JSON'),
    'redrive dlq recount --config config.yaml',
  ).action((args: RecountArgs) => recount(terminal, args));
}

async function recount(terminal: Terminal, args: RecountArgs): Promise<void> {
  const config = configFrom(args, {}, terminal);
  const { recountMessages } = await import('../../compose.ts');
  const progress = { label: 'counting', isQuiet: args.json === true };
  const found = await withDatabase(config, (db) =>
    migrated(() => withProgress(terminal, progress, () => recountMessages(db))),
  );
  const corrected = found.map((one) => ({
    ...one,
    counted: Number(one.counted),
    actual: Number(one.actual),
  }));
  const print = createPrinter(terminal);
  if (args.json === true) return print.json(JSON.stringify({ corrected }));
  if (corrected.length === 0) return print.line('all counts are correct');
  print.table<(typeof corrected)[number]>(
    [
      textColumn('TOPIC', ({ topic }) => topic, 20),
      textColumn('STATUS', ({ status }) => status),
      numberColumn('WAS', ({ counted }) => counted),
      numberColumn('IS', ({ actual }) => actual),
    ],
    corrected,
  );
}
