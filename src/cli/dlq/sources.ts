import { Option, type Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { withExamples } from '../examples.ts';
import { UsageError } from '../exit-code.ts';
import { formatAge } from '../output/format-age.ts';
import type { Column } from '../output/render-table.ts';
import { escapeText } from '../output/escape-text.ts';
import type { Terminal } from '../terminal.ts';
import { wholeNumber } from '../whole-number.ts';
import { callAndShow } from './dlq-session.ts';

type Source = Readonly<{
  topic: string;
  partition: number;
  position: number;
  end: number | null;
  lag: number | null;
  owner: string | null;
  state: string;
  last_error: string | null;
  stored_at: string | null;
  gaps: number;
}>;

type Account = Readonly<{
  topic: string;
  partition: number;
  first_offset: number;
  high_offset: number;
  passed: number;
  stored: number;
  reopened: number;
  folded: number;
  not_records: number;
  lost: number;
  reread: number;
  balanced: boolean;
  lag: number | null;
}>;

type SeekArgs = ApiArgs & Readonly<{ offset?: number; timestamp?: string; earliest?: true; reason: string }>;

export function addSourceCommands(dlq: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(dlq.command('sources').description('the dead-letter partitions being read, and how far')),
    'redrive dlq sources',
  ).action((args: ApiArgs) =>
    callAndShow<{ sources: readonly Source[] }>(
      { terminal, args },
      { path: ['sources'] },
      ({ sources }, { print, now }) =>
        sources.length === 0
          ? print.note(
              'no partition is read: `redrive doctor` shows the topics that match kafka.dlq_topic_pattern',
            )
          : print.table(sourceColumns(now), sources),
    ),
  );

  withExamples(
    withApiOptions(
      dlq
        .command('accounting')
        .description('the proof that no record is missing; fails where an offset is unexplained'),
    ),
    'redrive dlq accounting',
  ).action((args: ApiArgs) =>
    callAndShow<{ balanced: boolean; partitions: readonly Account[] }>(
      { terminal, args },
      { path: ['accounting'] },
      ({ partitions }, { print }) => {
        if (partitions.length === 0) return print.note('no partition has been read yet');
        const isBalanced: Column<Account> = {
          title: 'BALANCED',
          text: (account) => (account.balanced ? 'yes' : 'NO'),
          paint: (cell, account) => print.paint(account.balanced ? 'good' : 'bad', cell),
        };
        print.table([...accountColumns, isBalanced], partitions);
      },
      ({ balanced }) => balanced,
    ),
  );

  withExamples(
    withApiOptions(
      dlq.command('seek').description('read a partition again; what was stored before is not stored twice'),
    )
      .argument('<topic>', 'the dead-letter topic')
      .argument('<partition>', "the partition's number", wholeNumber(0, 2_147_483_647))
      .addOption(
        new Option('--offset <number>', 'from this offset')
          .argParser(wholeNumber(0, Number.MAX_SAFE_INTEGER))
          .conflicts(['timestamp', 'earliest']),
      )
      .addOption(
        new Option('--timestamp <time>', 'from the first record at or after it, in ISO 8601').conflicts([
          'offset',
          'earliest',
        ]),
      )
      .addOption(new Option('--earliest', 'from the first record that the broker still has'))
      .requiredOption('--reason <text>', 'why, for the record'),
    "redrive dlq seek orders.dlq.v1 0 --offset 1042 --reason 'restored from a backup'",
    "redrive dlq seek orders.dlq.v1 0 --timestamp 2026-02-20T10:30:00Z --reason 'restored from a backup'",
  ).action((topic: string, partition: number, args: SeekArgs) => {
    const { offset, timestamp, earliest, reason } = args;
    if (offset === undefined && timestamp === undefined && earliest === undefined)
      throw new UsageError('from where: give --offset, --timestamp or --earliest');
    return callAndShow<{ message: string }>(
      { terminal, args },
      {
        method: 'POST',
        path: ['sources', topic, String(partition), 'seek'],
        body: { offset, timestamp, earliest, reason },
      },
      ({ message }, { print }) => print.line(escapeText(message)),
    );
  });
}

function numberColumn<Row>(title: string, value: (row: Row) => number | null): Column<Row> {
  return { title, text: (row) => String(value(row) ?? '-'), align: 'right' };
}

function sourceColumns(now: Date): readonly Column<Source>[] {
  return [
    { title: 'TOPIC', text: ({ topic }) => topic, minWidth: 20 },
    numberColumn('PARTITION', ({ partition }) => partition),
    { title: 'STATE', text: ({ state }) => state },
    numberColumn('POSITION', ({ position }) => position),
    numberColumn('END', ({ end }) => end),
    numberColumn('LAG', ({ lag }) => lag),
    numberColumn('GAPS', ({ gaps }) => gaps),
    { title: 'STORED', text: ({ stored_at }) => formatAge(stored_at, now) },
    { title: 'OWNER', text: ({ owner }) => owner ?? '-', minWidth: 10 },
    { title: 'LAST ERROR', text: ({ last_error }) => last_error ?? '', minWidth: 10 },
  ];
}

const accountColumns: readonly Column<Account>[] = [
  { title: 'TOPIC', text: ({ topic }) => topic, minWidth: 20 },
  numberColumn('PARTITION', ({ partition }) => partition),
  numberColumn('FIRST', ({ first_offset }) => first_offset),
  numberColumn('HIGH', ({ high_offset }) => high_offset),
  numberColumn('PASSED', ({ passed }) => passed),
  numberColumn('STORED', ({ stored }) => stored),
  numberColumn('REOPENED', ({ reopened }) => reopened),
  numberColumn('FOLDED', ({ folded }) => folded),
  numberColumn('NOT RECORDS', ({ not_records }) => not_records),
  numberColumn('LOST', ({ lost }) => lost),
  numberColumn('REREAD', ({ reread }) => reread),
  numberColumn('LAG', ({ lag }) => lag),
];
