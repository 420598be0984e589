import type { Command } from 'commander';
import { withExamples } from '../examples.ts';
import { configFrom, withConfigOptions, type ConfigArgs } from '../options.ts';
import { numberColumn, textColumn } from '../output/columns.ts';
import { createPrinter } from '../output/printer.ts';
import type { Column } from '../output/render-table.ts';
import { withProgress } from '../output/progress.ts';
import type { Terminal } from '../terminal.ts';
import { withDatabase } from '../with-database.ts';
import { migrated } from './archive.ts';

type RecountArgs = ConfigArgs & Readonly<{ json?: boolean }>;

export function addRecountCommand(dlq: Command, terminal: Terminal): void {
  withExamples(
    withConfigOptions(
      dlq
        .command('recount')
        .description('count all messages and correct the stored counts of topics and groups'),
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
  const corrected = found.topics.map(withNumbers);
  const groups = found.groups.map(withNumbers);
  const print = createPrinter(terminal);
  if (args.json === true) return print.json(JSON.stringify({ corrected, groups }));
  if (corrected.length + groups.length === 0) return print.line('all counts are correct');
  const columns = <Row extends Counts>(): readonly Column<Row>[] => [
    textColumn('TOPIC', ({ topic }) => topic, 20),
    textColumn('STATUS', ({ status }) => status),
    numberColumn('WAS', ({ counted }) => counted),
    numberColumn('IS', ({ actual }) => actual),
  ];
  if (corrected.length > 0) print.table<Counts>(columns(), corrected);
  if (groups.length > 0)
    print.table<GroupCounts>(
      [
        textColumn('GROUP', ({ fingerprint }) => fingerprint),
        textColumn('CONSUMER GROUP', ({ consumerGroup }) => consumerGroup, 14),
        ...columns<GroupCounts>(),
      ],
      groups,
    );
}

type Counts = Readonly<{ topic: string; status: string; counted: number; actual: number }>;
type GroupCounts = Counts & Readonly<{ fingerprint: string; consumerGroup: string | null }>;

function withNumbers<Row extends Readonly<{ counted: bigint; actual: bigint }>>(row: Row) {
  return { ...row, counted: Number(row.counted), actual: Number(row.actual) };
}
